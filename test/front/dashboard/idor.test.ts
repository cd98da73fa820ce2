/**
 * The access table, walked: each route, asked by each kind of visitor, lets in exactly who it should; and what belongs to
 * another organization is not there, whoever names it, however.
 */
import test, { type ExecutionContext } from 'ava';
import { isAtLeast, type Role, roles } from '#accounts/people/roles.ts';
import { checkHeaders, type Page } from '#lab/browser/browser.ts';
import type { Sample } from '#lab/scenes/dashboard-sample.ts';
import { pairs, pathOf, sampledTable, staleSamples } from '#lab/scenes/dashboard-samples.ts';
import { type Org, type Scene, startScene } from '#lab/scenes/dashboard-scene.ts';
import { hasTurn } from '#lab/turns.ts';
import { until } from '#lab/until.ts';

type Tried = (typeof sampledTable)[number];
type SceneBrowser = Awaited<ReturnType<Scene['browserOf']>>;

/** By whose path, and whose it is that is named. */
interface Asked {
  path: Org;
  owner: Org;
}

type Visitor = 'nobody' | 'foreigner' | Role | 'operator';
const visitors: Visitor[] = ['nobody', 'foreigner', ...roles, 'operator'];

type Refusal = 'sign in' | 403 | 404;

const turns = 3;

interface Refused extends Asked {
  visitor: Visitor;
  expected: Refusal;
  what: string;
}

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
  const scene = await startScene(t, {}, 'sqlite');
  const { a, b, operator } = scene;
  const users: Record<Visitor, string | null> = {
    nobody: null,
    foreigner: b.people.owner,
    ...a.people,
    operator,
  };

  const prepare = async (entry: Tried, browser: SceneBrowser, { path: pathOrg, owner }: Asked) => {
    const given = await entry.sample(scene, owner, browser);
    const ask = async () => {
      const answer = await send(browser, entry, pathOf(entry, pathOrg.id, given), given.fields);
      return { given, status: answer.status, refused: refusalOf(t, answer) };
    };
    return { given, ask };
  };

  // Who is refused first, all of them: in sessions that none of it ends, and then nothing in the database may be different.
  const refusedBrowsers = new Map<Visitor, SceneBrowser>();
  for (const visitor of visitors) refusedBrowsers.set(visitor, await scene.browserOf(users[visitor]));
  const refused: (Pick<Refused, 'what' | 'expected'> & {
    ask: Awaited<ReturnType<typeof prepare>>['ask'];
  })[] = [];
  for (const [index, entry] of sampledTable.entries()) {
    for (const one of refusalsOf(entry, a, b).filter((_, at) => hasTurn(index + at, turns))) {
      const { ask } = await prepare(entry, refusedBrowsers.get(one.visitor)!, one);
      refused.push({ what: `${entry.route} ${one.what}`, expected: one.expected, ask });
    }
  }
  t.true(refused.length > 400 / turns, `${refused.length} refusals`);
  const before = await scene.everythingAtRest();
  for (const { what, expected, ask } of refused) {
    const answer = await ask();
    t.is(answer.refused, expected, `${what} (${answer.status})`);
  }
  t.deepEqual(await scene.changedSince(before), [], 'somebody who was refused has changed something');

  // Who only looks goes on in the same session; a POST may end it, and so does a link that signs in.
  const looking = new Map<Visitor, SceneBrowser>();
  const browserFor = async (visitor: Visitor, route: string) => {
    const known = looking.get(visitor) ?? (await scene.browserOf(users[visitor]));
    if (isLooking(route)) looking.set(visitor, known);
    else looking.delete(visitor);
    return known;
  };
  for (const entry of sampledTable) {
    const { route, access: min, scope, method } = entry;
    let isNamedByField = false;
    for (const visitor of visitors) {
      if (verdict(visitor, min, scope) !== 'in') continue;
      const { given, ask } = await prepare(entry, await browserFor(visitor, route), { path: a, owner: a });
      isNamedByField = given.isNamedByField === true;
      isWelcome(given, (await ask()).status, `${route} as ${visitor}`);
      if (method === 'POST') await scene.settled();
    }
    if (isNamedByField && scope === 'organization') {
      const { ask } = await prepare(entry, await browserFor('owner', route), { path: a, owner: b });
      const { status } = await ask();
      t.true([404, 422].includes(status), `${route}: what is the other's, in a field (${status})`);
    }
  }

  // The doctor that was called last would ask a database that is gone, and this process would wait for its answer.
  const looker = await scene.browserOf(operator);
  await until(async () => !/id="doctor-result" hx-get/.test((await looker.get('/dashboard/doctor')).html));
  function isWelcome({ status: expected }: Sample, status: number, what: string): void {
    if (expected === undefined) t.true(status === 200 || status === 303, `${what}: ${status}`);
    else t.is(status, expected, what);
  }
});

const isLooking = (route: string) => route.startsWith('GET ') && route !== 'GET /dashboard/sign-in/:token';

/** Who is to be refused, as whom and for what: by role, and by whose it is. */
function refusalsOf({ path, access: min, scope }: Tried, a: Org, b: Org): Refused[] {
  const byRole = visitors.flatMap((visitor): Refused[] => {
    const expected = verdict(visitor, min, scope);
    return expected === 'in' ? [] : [{ visitor, path: a, owner: a, expected, what: `as ${visitor}` }];
  });
  if (scope !== 'organization') return byRole;
  // What B has, by A's path and by B's, as A's owner.
  const asOwner = { visitor: 'owner', expected: 404 } as const;
  const isTheirs = min !== 'operator' && /:org\/.*:/.test(path);
  return [
    ...byRole,
    { ...asOwner, path: b, owner: b, what: "by the other organization's path" },
    { ...asOwner, path: b, owner: a, what: "for one's own, by the other's path" },
    ...(isTheirs
      ? [{ ...asOwner, path: a, owner: b, what: "for what is the other's, by one's own path" }]
      : []),
  ];
}

function send(browser: SceneBrowser, { method }: Tried, path: string, fields: Sample['fields'] = {}) {
  if (method === 'GET') return browser.ask('GET', path);
  return browser.ask('POST', path, {
    body: new URLSearchParams(pairs({ ...fields, _csrf: browser._csrf })).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
}

/** Null: let in, whatever came of it. */
function refusalOf(t: ExecutionContext, answer: Page): Refusal | null {
  const { status, headers } = answer;
  if (status === 303 && headers.get('location')!.startsWith('/dashboard/sign-in?')) {
    checkHeaders(t, answer);
    return 'sign in';
  }
  if (status !== 404 && status !== 403) return null;
  checkHeaders(t, answer);
  return status;
}

function verdict(visitor: Visitor, min: string, scope: string): 'in' | Refusal {
  if (min === 'anyone') return 'in';
  if (visitor === 'nobody') return 'sign in';
  if (visitor === 'operator' || min === 'user') return 'in';
  if (scope === 'organization' && visitor === 'foreigner') return 404;
  if (min === 'operator') return 403;
  return isAtLeast(visitor as Role, min as Role) ? 'in' : 403;
}
