/** docs/design.md, section 2, the rows about accounts and the whole: credits, keys, tracking, changes, OpenAPI, versioning, codes. */
import test from 'ava';
import { cliOf } from '../lab/cli.ts';
import type { Answer } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';
import { hasHeaders, isError, isSent } from './answer.ts';
import {
  client,
  elsewhere,
  emailPath,
  nobodysId,
  openTenant,
  ownWorld,
  people,
  sendPath,
  sharedWorld,
  someone,
  type Tenant,
} from './client.ts';

const world = sharedWorld();

// Credits.

test('design 2 credits: one a recipient accepted', async (t) => {
  const own = await openTenant(world(), { quota: 10 });
  const to = people(4);
  await own.suppress(to[1]!);
  const { body } = await own.send({ to });
  t.is(body.accepted.length, 3);
  t.is((await own.get(body.emailId)).body.credits, 3);
  t.like(await own.books(), { quota: 7, ledger: 7 });
});

test('design 2 credits: the quota first, then the wallet', async (t) => {
  const own = await openTenant(world(), { quota: 2, wallet: 2 });
  await own.send();
  t.like(await own.books(), { quota: 1, wallet: 2 });
  isSent(t, await own.send({ to: people(2) }));
  t.like(await own.books(), { quota: 0, wallet: 1 });
  await own.send();
  t.deepEqual(await own.books(), { emails: 3, quota: 0, wallet: 0, ledger: 0 });
});

test('design 2 credits: recipients get them in request order', async (t) => {
  const own = await openTenant(world(), { quota: 1, wallet: 1 });
  const to = ['c', 'a', 'd', 'b'].map((name) => `${name}-${someone()}`);
  const { body } = await own.send({ to });
  t.deepEqual([body.accepted, body.insufficientCredit], [to.slice(0, 2), to.slice(2)]);
});

test('design 2 credits: a bounce refunds nothing', async (t) => {
  const own = await openTenant(world(), { quota: 5 });
  const { body } = await own.send({ to: someone('nowhere.invalid') });
  await until(async () => (await own.get(body.emailId)).body.status === 'bounced');
  t.deepEqual(await own.books(), { emails: 1, quota: 4, wallet: 0, ledger: 4 });
});

test('design 2 credits: a ledger holds every movement and balances to zero', async (t) => {
  const own = await openTenant(world());
  const { json } = cliOf(t, world());
  await json(`credits quota ${own.orgId} 3`);
  await json(`credits grant ${own.orgId} 2`);
  isSent(t, await own.send({ to: people(4) }));
  isError(t, await own.send({ to: [] }), '400 VALIDATION_ERROR');
  isSent(t, await own.send());
  isError(t, await own.send(), '402 INSUFFICIENT_CREDITS');
  const { quota, wallet, ledger } = await json(`credits show ${own.orgId}`);
  t.like(quota, { limit: 3, used: 3, remaining: 0 });
  t.is(wallet, 0);
  const moved: number[] = ledger.map(({ change }: { change: number }) => change);
  const changes = moved.filter((change) => change !== 0);
  t.is(
    changes.reduce((sum, change) => sum + change, 0),
    0,
  );
  t.deepEqual(
    changes.toSorted((a, b) => a - b),
    [-4, -1, 2, 3],
  );
  t.true(ledger.some(({ balance }: { balance: number }) => balance === 0));
});

test('design 2 credits: credits.low at a tenth of the quota left, credits.exhausted at zero, each once until refilled', async (t) => {
  const own = await openTenant(world(), { quota: 20 });
  const news = () =>
    world().db('events').where({ org_id: own.orgId }).whereNull('email_id').orderBy('id').pluck('type');
  await own.send({ to: people(10) });
  await own.send({ to: people(7) });
  t.deepEqual(await news(), [], 'three are left');
  await own.send();
  t.deepEqual(await news(), ['credits.low'], 'two are left');
  await own.send();
  await own.send();
  await own.send();
  t.deepEqual(await news(), ['credits.low', 'credits.exhausted']);
  await cliOf(t, world()).json(`credits grant ${own.orgId} 5`);
  await own.send({ to: people(5) });
  t.deepEqual((await news()).slice(2).sort(), ['credits.exhausted', 'credits.low']);
});

test('design 2 credits: where credits.low is told is a setting', async (t) => {
  const own = await ownWorld(t, { settings: { POSTERN_CREDITS_LOW: '50' } });
  const sender = await openTenant(own, { quota: 4 });
  const news = () => own.db('events').where({ org_id: sender.orgId }).whereNull('email_id').pluck('type');
  await sender.send();
  t.deepEqual(await news(), []);
  await sender.send();
  t.deepEqual(await news(), ['credits.low']);
});

// Keys.

test('design 2 keys: --domain D is the scope domain_scope:D; it restricts sending by full_access too; alone it grants nothing', async (t) => {
  const own = await openTenant(world());
  const { json } = cliOf(t, world());
  const create = `key create --org ${own.orgId} --label l --scope`;
  const made = await json(`${create} full_access --domain Other.invalid`);
  t.deepEqual(made.scopes, ['full_access', 'domain_scope:other.invalid']);
  isError(t, await client(world(), made.key).send(), '403 DOMAIN_NOT_ALLOWED');
  isError(t, await client(world(), made.key).get(nobodysId), '404 NOT_FOUND');
  const alone = await own.addKey('domain_scope:sender.invalid');
  isError(t, await alone.send(), '403 FORBIDDEN');
  isError(t, await alone.get(nobodysId), '403 FORBIDDEN');
});

// Tracking.

test('design 2 tracking: off for a new domain; a member left out of tracking keeps the domain’s setting', async (t) => {
  const seen = async (own: Tenant, tracking?: object) => {
    const { body } = await own.send({ tracking });
    return (await own.get(body.emailId)).body.tracking;
  };
  const own = await openTenant(world());
  t.deepEqual(await seen(own), { openTracking: false, clickTracking: false });
  t.deepEqual(await seen(own, { clickTracking: true }), { openTracking: false, clickTracking: true });
  const { json } = cliOf(t, world());
  await json(`domain tracking sender.invalid --opens on --clicks on --org ${own.orgId}`);
  await until(async () => (await seen(own)).openTracking, { what: 'the setting' });
  t.deepEqual(await seen(own), { openTracking: true, clickTracking: true });
  t.deepEqual(await seen(own, {}), { openTracking: true, clickTracking: true });
  t.deepEqual(await seen(own, { clickTracking: false }), { openTracking: true, clickTracking: false });
});

// Changes from elsewhere: the command line beside the running server, after the server has seen the old state.

type Cli = ReturnType<typeof cliOf>;
const changes: [what: string, expected: string, change: (own: Tenant, cli: Cli) => Promise<unknown>][] = [
  [
    'a key revoked',
    '401 UNAUTHORIZED',
    async ({ orgId }, { json }) => {
      const [{ id }] = await json(`key list --org ${orgId}`);
      return json(`key revoke ${id}`);
    },
  ],
  [
    'a domain removed',
    '403 DOMAIN_NOT_FOUND',
    ({ orgId }, { json }) => json(`domain remove sender.invalid --org ${orgId}`),
  ],
  [
    'an address suppressed',
    '422 ALL_RECIPIENTS_SUPPRESSED',
    ({ orgId }, { json }) => json(`suppression add ann@there.invalid --org ${orgId}`),
  ],
  [
    'the quota taken away',
    '402 INSUFFICIENT_CREDITS',
    ({ orgId }, { json }) => json(`credits quota ${orgId} 0`),
  ],
  [
    'the day’s requests limited',
    '429 RATE_LIMIT_EXCEEDED',
    ({ orgId }, { json }) => json(`org limits ${orgId} --per-day 1`),
  ],
  [
    'the day’s emails limited',
    '429 RATE_LIMIT_EXCEEDED',
    ({ orgId }, { json }) => json(`org limits ${orgId} --emails-per-day 1`),
  ],
];

for (const [what, expected, change] of changes) {
  test(`design 2 changes from elsewhere hold within a second: ${what}`, async (t) => {
    const own = await openTenant(world(), { quota: 1000 });
    let sends = 0;
    const send = () => own.send({ to: 'ann@there.invalid', subject: `${sends++}` }, { from });
    const from = elsewhere();
    isSent(t, await send());
    await change(own, cliOf(t, world()));
    const refused = await until(
      async () => {
        const answer = await send();
        return answer.status !== 200 && answer;
      },
      { what },
    );
    isError(t, refused, expected);
  });
}

// OpenAPI, versioning, error codes.

test('design 2 OpenAPI: /api/public/openapi.json, no key needed', async (t) => {
  const answer = await client(world(), null).call('GET', '/api/public/openapi.json');
  t.is(answer.status, 200);
  hasHeaders(t, answer);
  t.regex(answer.body.openapi, /^3\.\d\.\d$/);
  t.truthy(answer.body.paths[sendPath].post);
  t.truthy(answer.body.paths['/api/public/email/{id}'].get);
});

const everywhere: [what: string, ask: (own: Tenant) => Promise<Answer>][] = [
  ['a send', (own) => own.send()],
  ['an email', async (own) => own.get((await own.send()).body.emailId)],
  ['an error', (own) => own.send({}, { body: '{' })],
  ['a wrong key', () => client(world(), 'em_x').send({}, { from: elsewhere() })],
  ['an unknown path', (own) => own.call('GET', '/api/public/nothing')],
  ['a wrong method', (own) => own.call('PUT', sendPath)],
];

for (const [what, ask] of everywhere)
  test(`design 2 versioning: every response says X-API-Version: 1: ${what}`, async (t) => {
    t.is((await ask(await openTenant(world()))).headers.get('x-api-version'), '1');
  });

test('design 2 error codes: an unknown path is 404 NOT_FOUND, a wrong method 405 BAD_REQUEST with Allow', async (t) => {
  const own = await openTenant(world());
  isError(t, await own.call('POST', '/api/public/nothing'), '404 NOT_FOUND');
  for (const [path, allowed] of [
    [sendPath, 'POST'],
    [emailPath(nobodysId), 'GET'],
    ['/api/public/openapi.json', 'GET'],
  ] as const) {
    const answer = await own.call('DELETE', path);
    isError(t, answer, '405 BAD_REQUEST', path);
    t.true(answer.headers.get('allow')?.split(/, ?/).includes(allowed), path);
  }
});
