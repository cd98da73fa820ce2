/** Times the pages of the dashboard on a running server, each as a signed-in operator requests it. */
import { makeSetUpLink } from '#accounts/people/people.ts';
import { accessTable } from '#front/dashboard/security/route-access.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { quantile } from '#lab/load/figures.ts';
import type { Measured } from '#lab/scenes/measured-postern.ts';
import { insertWebhook } from '#mail/webhooks/rows/webhooks.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Times } from './backlog-statements.ts';

/** Search terms with which lists are requested, in addition to none. */
const searches: Record<string, string[]> = {
  '/dashboard/o/:org': ['?window=30d'],
  '/dashboard/o/:org/emails': [
    '?to=n70000@past0.invalid',
    '?to=nobody@there.invalid',
    '?to=n7',
    '?subject=order',
    '?subject=nothing',
    '?status=delivered',
    '?status=bounced',
    '?status=deferred',
    '?from=nobody',
    '?tag=a=b',
    '?within=24h',
    '?since=2020-01-01&until=2020-01-02',
  ],
  '/dashboard/organizations': ['?q=nothing'],
  '/dashboard/queue': ['?q=d1', '?q=nothing'],
};

const repeats = 20;
const warmUps = 3;

export interface Page {
  /** The route, with the search. */
  name: string;
  url: string;
  headers: { cookie: string };
}

/** The 95th percentile of each page in milliseconds. */
export async function timePages(server: Measured): Promise<Times> {
  const times: Times = {};
  for (const page of await visitPages(server)) times[page.name] = await timePage(page);
  return times;
}

/** All that an operator can get, for one who is signed in. */
export async function visitPages({ url, db }: Measured): Promise<Page[]> {
  const link = await makeSetUpLink(db, Date.now());
  const server = { url: () => url, setUpUrl: () => url + link!.path };
  const browser = createBrowser(server);
  await setUp(browser, server);
  const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const ids = await exampleIds(db);
  const pages: Page[] = [];
  for (const { method, path, access } of accessTable()) {
    const filled = path
      .split('/')
      .map((segment, at, all) => (segment[0] === ':' ? ids[all[at - 1]!] : segment));
    if (method !== 'GET' || access === 'anyone' || filled.includes(undefined)) continue;
    for (const search of ['', ...(searches[path] ?? [])])
      pages.push({ name: path + search, url: url + filled.join('/') + search, headers: { cookie } });
  }
  return pages;
}

/** Ids by the path segment before them. Pages of things that this server has none of are left out. */
async function exampleIds(db: Db): Promise<Record<string, string | undefined>> {
  const email = await db('emails').orderBy('id', 'desc').first('id', 'org_id');
  const waiting = await db('deliveries').whereNotNull('due_at').first('domain');
  const user = await db('users').first('id');
  const url = 'https://hooks.invalid/';
  // It gets no events, because no more mail is sent.
  const webhooks = await insertWebhook(
    db,
    { orgId: email.org_id, url, types: [], format: 'standard', secret: '', publicKey: null },
    Date.now(),
  );
  return {
    o: email.org_id,
    emails: email.id,
    domains: 'sender.invalid',
    team: user.id,
    to: waiting?.domain,
    webhooks,
  };
}

/** The 95th percentile in milliseconds. Rejects if it is not answered with a page. */
export async function timePage({ url, headers }: Page): Promise<number> {
  const times: number[] = [];
  for (let request = 0; request < repeats + warmUps; request++) {
    const begun = performance.now();
    const response = await fetch(url, { headers, redirect: 'manual' });
    if (response.status !== 200 && response.status !== 303)
      throw new Error(`${url} was answered ${response.status}`);
    // A file or a stream is timed until it begins.
    const isPage = /html|json/.test(response.headers.get('content-type') ?? '');
    if (isPage) await response.arrayBuffer();
    else await response.body?.cancel();
    if (request >= warmUps) times.push(performance.now() - begun);
  }
  return quantile(times, 0.95);
}
