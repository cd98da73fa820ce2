/**
 * `node scripts/dashboard.ts`: checks that every page of the dashboard answers within 100 ms with a million emails.
 *
 *   --emails 1000000     of one organization; one in a hundred is waiting
 *   --postgres           use PostgreSQL instead of SQLite
 *   --requests 20        to each page, one after the other, after three that do not count
 *   --limit 100          in milliseconds
 *
 * Creates the emails in the database (test/lab/database/backlog-rows.ts), starts the server, computes the statistics, signs in as the
 * operator, and requests each page of src/dashboard/security/route-access.ts that a signed-in user has, with ids that exist.
 * Lists are also requested with search terms. Files and streams are timed until they begin.
 *
 * Exits 0 if the 95th percentile of each page is within the limit, 1 if one is not or does not answer with a page. Linux only,
 * on an otherwise idle machine. Leaves nothing behind.
 */
import Table from 'cli-table3';
import { makeKey } from '../src/accounts/create-key.ts';
import { makeSetUpLink } from '../src/accounts/people.ts';
import { accessTable } from '../src/dashboard/security/route-access.ts';
import { isPostgres } from '../src/db/engine/open.ts';
import { sumUp } from '../src/db/events/statistics.ts';
import { createBrowser, setUp } from '../test/lab/browser/browser.ts';
import { exampleOf, furnishOrganization } from '../test/lab/database/dashboard-rows.ts';
import { startPostgres } from '../test/lab/database/postgres-server.ts';
import { median, ms, progress, quantile } from '../test/lab/load/figures.ts';
import { perform, readOptions, type Stage } from '../test/lab/load/stage.ts';
import { startSmtpSink } from '../test/lab/mx/smtp-sink.ts';
import type { Measured } from '../test/lab/scenes/measured-postern.ts';
import type { World } from '../test/lab/scenes/world.ts';
import { startSide } from './backlog/backlog-side.ts';
import { domainOf } from './bench/bench-cases.ts';

const given = readOptions('node scripts/dashboard.ts [--emails N] [--postgres] … (see its header)', {
  emails: { type: 'string', default: '1000000' },
  postgres: { type: 'boolean', default: false },
  requests: { type: 'string', default: '20' },
  limit: { type: 'string', default: '100' },
});
const emails = Number(given.emails);
const limit = Number(given.limit);

/** Search parameters with which lists are requested, in addition to none. */
const searches: Record<string, string[]> = {
  'GET /dashboard/o/:org': ['?window=30d'],
  'GET /dashboard/o/:org/emails': [
    ...[
      '?to=n70000@past0.invalid',
      '?to=nobody@there.invalid',
      '?to=n7',
      '?subject=order',
      '?subject=nothing',
    ],
    ...['?status=delivered', '?status=bounced', '?status=deferred', '?from=shop', '?from=nobody', '?tag=a=b'],
    ...['?within=24h', '?since=2020-01-01&until=2020-01-02', '?part=rows', '?part=list'],
  ],
  'GET /dashboard/o/:org/suppressions': ['?q=n99999', '?q=nobody', '?q=past'],
  'GET /dashboard/organizations': ['?q=backlog', '?q=nothing'],
  'GET /dashboard/queue': ['?q=d1', '?q=nothing'],
};

interface Result {
  page: string;
  status: number;
  times: number[];
  bytes: number;
}

async function measure(stage: Stage): Promise<string[]> {
  const sink = await stage.start(startSmtpSink(stage.directory, ['127.0.1.1']), (it) => it.stop());
  const server = given.postgres ? await stage.start(startPostgres(stage.directory), (it) => it.stop()) : null;
  const amounts = { waiting: Math.round(emails / 100), past: emails, destinations: 50, organizations: 3 };
  const plan = { name: 'dashboard', amounts, databaseUrl: server?.url ?? null, settings: {} };
  const { postern } = await startSide(stage, sink, plan);
  // Two starts made two organizations; this one has the multiplied mail.
  const { id: orgId } = await postern.db('organizations').where({ name: 'Tenant' }).orderBy('id').first();
  await furnishOrganization(postern.db, orgId);
  if (isPostgres(postern.db)) await postern.db.raw('analyze');
  await sumUpAll(postern);
  await sendOne(postern, orgId);
  const cookie = await signIn(postern);
  const { paths, faults } = await pathsOf(postern, orgId);
  const results: Result[] = [];
  for (const path of paths) results.push(await time(postern.url, path, cookie, orgId));
  print(results);
  const slow = results.filter(({ times }) => quantile(times, 0.95) > limit);
  const wrong = results.filter(({ status }) => status !== 200 && status !== 303);
  return [
    ...faults,
    ...slow.map(({ page, times }) => `${page} takes ${ms(quantile(times, 0.95))}`),
    ...wrong.map(({ page, status }) => `${page} answers ${status}`),
  ];
}

/** Computes the statistics without the pauses that the server makes; the server computes them as well. */
async function sumUpAll({ db }: Measured): Promise<void> {
  const begun = performance.now();
  let events = 0;
  const times: number[] = [];
  for (;;) {
    const at = performance.now();
    const some = await sumUp(db);
    if (some === 0) break;
    events += some;
    times.push(performance.now() - at);
  }
  const rate = (events / (performance.now() - begun)) * 1000;
  progress(`figures: ${events} events summed up, ${rate.toFixed(0)}/s; a batch takes ${ms(median(times))}`);
}

/** The newest email, which pages are requested for: it has everything that a page can show. */
async function sendOne({ url, db }: Measured, orgId: string): Promise<void> {
  const { key } = await makeKey(db, { orgId, label: 'measurement', scopes: ['email:send'] }, Date.now());
  const mail = { from: 'Shop <shop@sender.invalid>', to: `newest@${domainOf(0)}`, subject: 'Your order' };
  const response = await fetch(`${url}/api/public/email/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...mail, html: '<p>Thank you.</p>', text: 'Thank you.' }),
  });
  if (!response.ok) throw new Error(`a send is answered ${response.status}`);
}

async function signIn({ url, db }: Measured): Promise<string> {
  const link = await makeSetUpLink(db, Date.now());
  const world = { url: () => url, setUpUrl: () => url + link!.path };
  const browser = createBrowser(world);
  await setUp(browser, world as unknown as World);
  return [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ');
}

async function pathsOf({ db }: Measured, orgId: string) {
  const paths: string[] = [];
  const faults: string[] = [];
  for (const { method, path, access } of accessTable()) {
    if (method !== 'GET' || access === 'anyone') continue;
    const filled = await filledIn(path);
    if (filled === null)
      faults.push(`${path}: nobody says what to ask for (test/lab/database/dashboard-rows.ts)`);
    else for (const search of ['', ...(searches[`GET ${path}`] ?? [])]) paths.push(filled + search);
  }
  return { paths, faults };

  async function filledIn(path: string): Promise<string | null> {
    const segments = path.split('/');
    for (const [index, segment] of segments.entries()) {
      if (!segment.startsWith(':')) continue;
      const example = await exampleOf(db, orgId, segments[index - 1]!);
      if (example === null) return null;
      segments[index] = encodeURIComponent(example);
    }
    return segments.join('/');
  }
}

const warmUps = 3;

async function time(url: string, path: string, cookie: string, orgId: string): Promise<Result> {
  const result: Result = { page: path.replace(orgId, 'ORG'), status: 0, times: [], bytes: 0 };
  for (let round = 0; round < Number(given.requests) + warmUps; round++) {
    const begun = performance.now();
    const response = await fetch(url + path, { headers: { cookie }, redirect: 'manual' });
    const isWhole = /html|json/.test(response.headers.get('content-type') ?? '');
    if (isWhole) result.bytes = (await response.arrayBuffer()).byteLength;
    if (round >= warmUps) result.times.push(performance.now() - begun);
    if (!isWhole) await response.body?.cancel();
    result.status = response.status;
  }
  return result;
}

function print(results: Result[]): void {
  const table = new Table({
    head: ['page', 'status', 'median', 'p95', 'KiB'],
    style: { head: [], border: [] },
  });
  const slowest = (one: Result) => quantile(one.times, 0.95);
  for (const one of results.toSorted((a, b) => slowest(b) - slowest(a)))
    table.push([
      one.page,
      one.status,
      ms(median(one.times)),
      ms(slowest(one)),
      (one.bytes / 1024).toFixed(0),
    ]);
  console.log(table.toString());
}

const faults = await perform('dashboard', measure);
console.log(faults.length === 0 ? '\nIt holds.' : `\nIt does not hold:\n  ${faults.join('\n  ')}`);
process.exit(faults.length === 0 ? 0 : 1);
