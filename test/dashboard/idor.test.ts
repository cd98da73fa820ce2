/**
 * The access table, walked: each route, asked by each kind of visitor, lets in exactly who it should; and what belongs to
 * another organization is not there, whoever names it, however.
 */
import test from 'ava';
import { isAtLeast, type Role, roles } from '../../src/accounts/roles.ts';
import type { Page } from '../lab/browser/browser.ts';
import type { Sample } from '../lab/scenes/dashboard-sample.ts';
import { pathOf, sampledTable, staleSamples } from '../lab/scenes/dashboard-samples.ts';
import { type Org, type Scene, startScene } from '../lab/scenes/dashboard-scene.ts';
import { until } from '../lab/until.ts';

type Tried = (typeof sampledTable)[number];
type SceneBrowser = Awaited<ReturnType<Scene['browserOf']>>;

/** By whose path, and whose it is that is named. */
interface Asked {
  path: Org;
  owner: Org;
  /** Nothing is refused, so that nothing need stay as it was. */
  isIn: boolean;
}

type Visitor = 'nobody' | 'foreigner' | Role | 'operator';
const visitors: Visitor[] = ['nobody', 'foreigner', ...roles, 'operator'];

test('each route has a sample, and each sample a route', (t) => {
  t.deepEqual(staleSamples, []);
});

test('what a form names is looked for in one’s own organization', async (t) => {
  const scene = await startScene(t);
  const { a, b, world } = scene;
  const browser = await scene.browserOf(a.people.owner);
  const idOf = async ({ id }: Org): Promise<string> =>
    (await world.db('events').where({ org_id: id }).first('id')).id;
  const webhookId = await scene.make.webhook(a.id);
  const told = () => world.db('webhook_messages').where({ webhook_id: webhookId }).pluck('event_id');
  const replay = (event: string) =>
    browser.post(`/dashboard/o/${a.id}/webhooks/${webhookId}/replay`, { _csrf: browser._csrf, event });
  t.regex((await replay(await idOf(b))).text, /no events to replay/);
  t.deepEqual(await told(), []);
  await replay(await idOf(a));
  t.deepEqual(await told(), [await idOf(a)]);

  const copy = await world.db('deliveries').where({ email_id: b.emailId }).first('id');
  const theirs = await browser.get(`/dashboard/o/${a.id}/emails/${a.emailId}/source?copy=${copy.id}`);
  t.is(theirs.status, 404);
});

test('each route lets in whom the table says, and shows nobody what is another’s', async (t) => {
  t.timeout(120_000);
  const scene = await startScene(t);
  const { a, b, operator } = scene;
  const users: Record<Visitor, string | null> = {
    ...{ nobody: null, foreigner: b.people.owner, ...a.people, operator },
  };

  // Who only looks goes on in the same session; a POST may have ended it.
  const looking = new Map<Visitor, SceneBrowser>();
  const browserFor = async (visitor: Visitor, method: string) => {
    const known = method === 'GET' ? looking.get(visitor) : undefined;
    const browser = known ?? (await scene.browserOf(users[visitor]));
    if (method === 'GET') looking.set(visitor, browser);
    else looking.delete(visitor);
    return browser;
  };

  const askBy = async (entry: Tried, visitor: Visitor, { path: pathOrg, owner, isIn }: Asked) => {
    const browser = await browserFor(visitor, entry.method);
    const given = await entry.sample(scene, owner, browser);
    const before = isIn ? null : await scene.everything();
    const answer = await send(browser, entry, pathOf(entry, pathOrg.id, given), given.fields);
    const refused = refusalOf(answer);
    if (refused !== null && before !== null)
      t.deepEqual(await scene.changedSince(before), [], `${entry.route}: ${visitor} changed something`);
    if (refused === null && entry.method === 'POST') await scene.settled();
    return { given, status: answer.status, refused };
  };

  for (const entry of sampledTable) {
    const { route, access: min, scope } = entry;
    const ask = (visitor: Visitor, path: Org, owner: Org, isIn = false) =>
      askBy(entry, visitor, { path, owner, isIn });

    for (const visitor of visitors) {
      const expected = verdict(visitor, min, scope);
      const { given, status, refused } = await ask(visitor, a, a, expected === 'in');
      const what = `${route} as ${visitor}`;
      if (expected === 'in') isWelcome(given, status, what);
      else t.is(refused, expected, what);
    }

    if (scope !== 'organization') continue;
    // What B has, by A's path and by B's, as A's owner.
    t.is((await ask('owner', b, b)).refused, 404, `${route}: by the other organization's path`);
    t.is((await ask('owner', b, a)).refused, 404, `${route}: one's own, by the other's path`);
    const { given, status, refused } = await ask('owner', a, b);
    if (min !== 'operator' && Object.keys(given.params ?? {}).length > 0)
      t.is(refused, 404, `${route}: what is the other's, by one's own path (${status})`);
    else if (given.isNamedByField)
      t.true([404, 422].includes(status), `${route}: what is the other's, in a field (${status})`);
  }

  // The doctor that was called last would ask a database that is gone, and this process would wait for its answer.
  const looker = await scene.browserOf(operator);
  await until(async () => !/id="doctor-result" hx-get/.test((await looker.get('/dashboard/doctor')).html));
  function isWelcome({ status: expected }: Sample, status: number, what: string): void {
    if (expected === undefined) t.true(status === 200 || status === 303, `${what}: ${status}`);
    else t.is(status, expected, what);
  }
});

function send(browser: SceneBrowser, { method }: Tried, path: string, fields: Sample['fields'] = {}) {
  if (method === 'GET') return browser.ask('GET', path);
  return browser.ask('POST', path, {
    body: new URLSearchParams(pairs({ ...fields, _csrf: browser._csrf })).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
}

/** Null: let in, whatever came of it. */
function refusalOf({ status, headers }: Page): 'sign in' | 403 | 404 | null {
  if (status === 303 && headers.get('location')!.startsWith('/dashboard/sign-in?')) return 'sign in';
  return status === 404 || status === 403 ? status : null;
}

function verdict(visitor: Visitor, min: string, scope: string): 'in' | 'sign in' | 403 | 404 {
  if (min === 'anyone') return 'in';
  if (visitor === 'nobody') return 'sign in';
  if (visitor === 'operator' || min === 'user') return 'in';
  if (scope === 'organization' && visitor === 'foreigner') return 404;
  if (min === 'operator') return 403;
  return isAtLeast(visitor as Role, min as Role) ? 'in' : 403;
}

function pairs(fields: Record<string, string | string[]>): [string, string][] {
  return Object.entries(fields).flatMap(([name, values]) =>
    [values].flat().map((one): [string, string] => [name, one]),
  );
}
