/**
 * The dashboard and the API, walked by name: an organization that registers the names of another one (its domain, a domain
 * below it, its suppressed addresses), or asks for them anywhere, learns nothing of the other and changes nothing of it.
 * idor.test.ts walks by id.
 */
import test from 'ava';
import { registerDomain } from '#accounts/domain-registration.ts';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { createSeal } from '#accounts/seal.ts';
import type { Document } from '#front/api/openapi/openapi-types.ts';
import { operationsOf, readContract } from '#lab/openapi.ts';
import { pairs, pathOf, sampledTable } from '#lab/scenes/dashboard-samples.ts';
import { type Org, type Scene, startScene } from '#lab/scenes/dashboard-scene.ts';
import { keepReport } from '#mail/returned/rows/domain-reports-table.ts';
import { loadSecrets } from '#platform/base/secrets.ts';

/** In everything that only the other organization may see. */
const canary = 'canary';

/** Parameters of queries and fields of forms that a name may stand in. */
const places = ['q', 'search', 'to', 'from', 'domain', 'name', 'address', 'destination', 'recipient'];

interface Step {
  method: string;
  path: string;
  /** Of a form of the dashboard. */
  fields?: Record<string, string | string[]>;
  /** Of a call of the API. */
  json?: unknown;
}

test('a form or query with names of another organization shows and changes nothing of it', async (t) => {
  const scene = await startScene(t);
  const { a, b, world } = scene;
  const address = await furnish(scene, b);
  const domains = [b.domain, `mail.${b.domain}`];
  const owner = await scene.browserOf(a.people.owner);
  const { document } = await readContract(world);
  const before = await rowsOf(scene, b);

  async function take({ method, path, fields, json }: Step): Promise<{ status: number; text: string }> {
    const what = `${method} ${path}`;
    const isForm = path.startsWith('/dashboard');
    const headers = isForm
      ? { 'content-type': 'application/x-www-form-urlencoded' }
      : { 'content-type': 'application/json', authorization: `Bearer ${a.key}` };
    const form = new URLSearchParams(pairs({ ...fields, _csrf: owner._csrf })).toString();
    const body = isForm ? form : JSON.stringify(json);
    const answer = await owner.ask(method, path, { headers, ...(method !== 'GET' && { body }) });
    t.false(answer.html.includes(canary), `${what} shows what is another's`);
    t.deepEqual(await rowsOf(scene, b), before, `${what} changed what is another's`);
    return { status: answer.status, text: answer.html };
  }

  /** A has the names too, without any proof. */
  async function takeNames(): Promise<void> {
    const terms = { seal: createSeal(loadSecrets(world.config)), now: world.clock.now() };
    for (const name of domains) {
      const known = await world.db('domains').where({ org_id: a.id, name }).first('id');
      if (!known) await registerDomain(world.db, { orgId: a.id, name }, terms);
    }
    await addSuppression(world.db, suppressionOf(a.id, address, 'own'), world.clock.now());
  }

  const asOwner = await (await scene.browserOf(b.people.owner)).get(
    `/dashboard/o/${b.id}/domains/${b.domain}`,
  );
  t.regex(asOwner.html, /canary-reporter[\s\S]*canary-sessions/, 'its owner sees them');

  const named = [...(await namedPages(scene, domains)), ...namedCalls(document, domains, address)];
  t.true(named.length >= 30, `${named.length} requests`);
  const lists = [...domains, `@${b.domain}`, address, '@there.invalid'].flatMap((name) => [
    ...listPages(a, name),
    ...listCalls(document, name),
  ]);
  t.true(lists.filter(({ path }) => path.startsWith('/api/')).length >= 15);
  for (const step of named) t.is((await take(step)).status, 404, `${step.method} ${step.path}`);
  for (const step of lists) await take(step);
  for (const step of named) {
    await takeNames();
    await take(step);
  }
  await takeNames();
  for (const step of lists) await take(step);

  for (const name of domains) {
    const mail = { to: 'ann@there.invalid', subject: 'x', text: 'x' };
    const send = { method: 'POST', path: '/api/public/email/send', json: { ...mail, from: `app@${name}` } };
    t.regex((await take(send)).text, /DOMAIN_NOT_VERIFIED/);
    const fields = { ...mail, local: 'app', domain: name };
    t.is((await take({ method: 'POST', path: `/dashboard/o/${a.id}/send-test`, fields })).status, 422);
  }
});

/** Every page and form that has a name in its path. */
async function namedPages(scene: Scene, names: string[]): Promise<Step[]> {
  const visitor = await scene.browserOf(scene.a.people.owner);
  const entries = sampledTable.filter(
    ({ path }) => path.startsWith('/dashboard/o/:org/') && path.includes(':name'),
  );
  const samples = await Promise.all(
    entries.map(async (entry) => ({ entry, fields: (await entry.sample(scene, scene.a, visitor)).fields })),
  );
  return samples.flatMap(({ entry, fields }) =>
    names.map((name) => ({
      method: entry.method,
      path: pathOf(entry, scene.a.id, { params: { name } }),
      fields: fields && 'typed' in fields ? { ...fields, typed: name } : fields,
    })),
  );
}

/** Every call that has a name or an address in its path, with the body of the documentation. */
function namedCalls(document: Document, names: string[], address: string): Step[] {
  return operationsOf(document).flatMap(({ method, path, operation }) => {
    const [placeholder, kind] = /\{(name|address)\}/.exec(path) ?? [];
    if (placeholder === undefined) return [];
    const json = operation.requestBody?.content['application/json']?.examples?.example?.value;
    return (kind === 'name' ? names : [address]).map((name) => ({
      method: method.toUpperCase(),
      path: path.replace(placeholder, encodeURIComponent(name)),
      json,
    }));
  });
}

/** Every page without an id, asked for a name in every way. */
function listPages({ id }: Org, name: string): Step[] {
  const query = new URLSearchParams(places.map((place) => [place, name] as [string, string]));
  const lists = sampledTable.filter(
    ({ method, path }) => method === 'GET' && /^\/dashboard\/o\/:org(?!.*:)/.test(path),
  );
  return lists.map(({ path }) => ({ method: 'GET', path: `${path.replace(':org', id)}?${query}` }));
}

/** Every list of the API, by one parameter at a time: one that is not known is a fault of the query. */
function listCalls(document: Document, name: string): Step[] {
  const lists = operationsOf(document).filter(({ method, path }) => method === 'get' && !path.includes('{'));
  return lists.flatMap(({ path, operation }) =>
    operation.parameters
      .filter((parameter) => places.includes(parameter.name))
      .map((parameter) => ({
        method: 'GET',
        path: `${path}?${new URLSearchParams({ [parameter.name]: name })}`,
      })),
  );
}

/** What B has, each with the canary in it. */
async function furnish({ world, make }: Scene, b: Org): Promise<string> {
  const { db, clock } = world;
  const about = { domain: b.domain, reportId: '1', beginsAt: 0, endsAt: clock.now(), policy: 'none' };
  const totals = { messages: 3, passed: 3, quarantined: 0, rejected: 0 };
  const reporter = `${canary}-reporter`;
  await keepReport(db, { kind: 'dmarc', ...about, reporter, totals, sources: [] }, [], clock.now());
  const tls = { kind: 'tls' as const, ...about, totals: { sessions: 3, failed: 0 }, failures: [] };
  await keepReport(db, { ...tls, reporter: `${canary}-sessions` }, [], clock.now());
  await db('domains')
    .where({ org_id: b.id, name: b.domain })
    .update({ tracking_host: `${canary}.invalid`, dkim_selector: canary, verified_at: 0 });
  const { id, address } = await make.suppression(b.id);
  await db('suppressions').where({ id }).update({ reason: canary });
  await db('emails').where({ org_id: b.id }).update({ subject: canary });
  return address;
}

/** By table; rows as texts, so that a difference is one row. */
async function rowsOf({ world: { db } }: Scene, { id, domain }: Org): Promise<string[][]> {
  const ofB = db('domains').where({ org_id: id }).select('id');
  const tables = [
    ...['domains', 'suppressions', 'memberships'].map((name) => db(name).where({ org_id: id }).select()),
    db('domain_reports').where({ domain }).select(),
    db('dkim_keys').whereIn('domain_id', ofB).select(),
  ];
  return (await Promise.all(tables)).map((rows) => rows.map((row) => JSON.stringify(row)));
}
