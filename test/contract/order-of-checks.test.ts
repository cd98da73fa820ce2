/** docs/design.md, section 2, first rows: the order of checks, requests and limits, replays, idempotency, duplicates. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import type { Answer } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { isError, isReplay, isSent, rate } from './answer.ts';
import {
  breakSubject,
  client,
  elsewhere,
  emailPath,
  nobodysId,
  openTenant,
  people,
  sharedWorld,
  someone,
  type Tenant,
  turningWorld,
} from './client.ts';

const world = sharedWorld();
const turned = turningWorld();
const unlimited = '2147483647';
const ask = (who: Pick<Tenant, 'get'>) => who.get(nobodysId);

// Order of checks on a send: of two faults, the earlier speaks.

type Two = (own: Tenant) => Promise<Answer>;
const exhausted = async () => {
  const own = await openTenant(world(), { limits: { requestsPerDay: 1 } });
  await ask(own);
  return own;
};

const order: Record<string, Two> = {
  'key (401) before request rate (429): 401 UNAUTHORIZED': async () => {
    const own = await exhausted();
    const key = await own.addKey('full_access');
    await own.revoke(key);
    return key.send({}, { from: elsewhere() });
  },
  'daily requests (429) before scope (403): 429 RATE_LIMIT_EXCEEDED': async () =>
    (await (await exhausted()).addKey('email:read')).send(),
  'scope (403) before JSON (400): 403 FORBIDDEN': async (own) =>
    (await own.addKey('email:read')).send({}, { body: '{' }),
  'Content-Type (400) before schema (400): 400 BAD_REQUEST': (own) =>
    own.send({ subject: 5 }, { headers: { 'content-type': 'text/plain' } }),
  'schema (400 VALIDATION_ERROR) before sender syntax (400 BAD_REQUEST): 400 VALIDATION_ERROR': (own) =>
    own.send({ from: 'App', subject: '' }),
  'schema (400) before the key’s domain_scope (403): 400 VALIDATION_ERROR': async (own) =>
    (await own.addKey('email:send', 'domain_scope:other.invalid')).send({ subject: '' }),
  'sender syntax (400) before the key’s domain_scope (403): 400 BAD_REQUEST': async (own) =>
    (await own.addKey('email:send', 'domain_scope:other.invalid')).send({ from: 'App' }),
  'the key’s domain_scope (403) before domain registered (403): 403 DOMAIN_NOT_ALLOWED': async (own) =>
    (await own.addKey('email:send', 'domain_scope:other.invalid')).send({ from: 'a@nobodys.invalid' }),
  'domain verified (403) before idempotency (400 for the key with another request): 403 DOMAIN_NOT_VERIFIED':
    async (own) => {
      await own.addDomain('pending.invalid', { status: 'pending' });
      await own.send({ idempotencyKey: 'used' });
      return own.send({ idempotencyKey: 'used', from: 'a@pending.invalid' });
    },
  'JSON (400) before the key’s domain_scope (403): 400 BAD_REQUEST': async (own) =>
    (await own.addKey('email:send', 'domain_scope:other.invalid')).send({}, { body: '{' }),
  'domain verified (403) before suppression (422): 403 DOMAIN_NOT_VERIFIED': async (own) => {
    const to = someone();
    await own.suppress(to);
    await own.addDomain('unverified.invalid', { status: 'pending' });
    return own.send({ to, from: 'a@unverified.invalid' });
  },
  'suppression (422) before daily delivery capacity (429): 422 ALL_RECIPIENTS_SUPPRESSED': async () => {
    const own = await openTenant(world(), { limits: { emailsPerDay: 0 } });
    const to = someone();
    await own.suppress(to);
    return own.send({ to });
  },
  'daily delivery capacity (429) before credits (402): 429 RATE_LIMIT_EXCEEDED': async () =>
    (await openTenant(world(), { quota: 1, limits: { emailsPerDay: 0 } })).send({ to: people(2) }),
  'credits (402) before commit (500): 402 INSUFFICIENT_CREDITS': async () => {
    const mend = await breakSubject(world(), 'poor');
    const answer = await (await openTenant(world(), { quota: 0 })).send({ subject: 'poor' });
    await mend();
    return answer;
  },
  'compose and sign (500) last: 500 SEND_FAILED': async () =>
    (await openTenant(world(), { domain: { dkim_private_key: 'v1.AAAA.AAAA.AAAA' } })).send(),
};

for (const [title, provoke] of Object.entries(order))
  test(`order of checks: ${title}`, async (t) => {
    isError(t, await provoke(await openTenant(world())), title.split(': ')[1]!);
  });

/** Refused by an earlier check, though its signature could not be made either. */
const unsigned: [expected: string, provoke: (to: string) => Promise<Tenant>][] = [
  ['402 INSUFFICIENT_CREDITS', () => openTenant(world(), { quota: 0 })],
  ['429 RATE_LIMIT_EXCEEDED', () => openTenant(world(), { limits: { emailsPerDay: 0 } })],
  [
    '422 ALL_RECIPIENTS_SUPPRESSED',
    async (to) => {
      const own = await openTenant(world());
      await own.suppress(to);
      return own;
    },
  ],
];

for (const [expected, provoke] of unsigned)
  test(`order of checks: ${expected} before compose and sign (500)`, async (t) => {
    const to = someone();
    const own = await provoke(to);
    await own.addDomain('unsigned.invalid', { dkim_private_key: 'x' });
    isError(t, await own.send({ to, from: 'app@unsigned.invalid' }), expected);
  });

test('order of checks: idempotency (replay, 200) before suppression, capacity and credits', async (t) => {
  const own = await openTenant(world(), { quota: 1, limits: { emailsPerDay: 1 } });
  const to = someone();
  const [keyed, plain] = [{ to, idempotencyKey: 'k' }, { to: someone() }];
  const first = await own.send(keyed);
  isSent(t, first);
  await own.suppress(to, plain.to);
  isReplay(t, await own.send(keyed), first);
  isError(t, await own.send(plain), '422 ALL_RECIPIENTS_SUPPRESSED');
});

// What counts as a request.

test('what counts as a request: every authenticated call, whatever its outcome', async (t) => {
  const own = await openTenant(world(), { quota: 1, limits: { requestsPerDay: 100 } });
  const reader = await own.addKey('email:read');
  const calls: [() => Promise<Answer>, number][] = [
    [() => ask(own), 404],
    [() => own.get('1'), 400],
    [() => own.call('GET', '/api/public/nowhere'), 404],
    [() => own.call('PUT', emailPath(nobodysId)), 405],
    [() => own.send({}, { body: '{' }), 400],
    [() => own.send({ subject: '' }), 400],
    [() => reader.send(), 403],
    [() => own.send({ from: 'a@nobodys.invalid' }), 403],
    [() => own.send({ to: people(10) }), 200],
    [() => own.send(), 402],
  ];
  for (const [index, [call, status]] of calls.entries()) {
    const answer = await call();
    t.is(answer.status, status);
    t.is(rate(answer)[1], String(99 - index), `call ${index}, ${status}`);
  }
});

test('what counts as a request: one refused with 401 is none', async (t) => {
  const own = await openTenant(world(), { limits: { requestsPerDay: 3 } });
  await client(world(), 'em_x').send({}, { from: elsewhere() });
  t.is(rate(await ask(own))[1], '2');
});

const left = ({ headers }: Answer) =>
  [...(headers.get('ratelimit') ?? '').matchAll(/"(\w+)";r=(\d+)/g)].map(
    ([, name, rest]) => `${name} ${rest}`,
  );

test('what counts as a request: one refused with 429 counts in no window', async (t) => {
  const own = await openTenant(world(), {
    limits: { requestsPerSecond: 2, requestsPerDay: 10, emailsPerDay: 0 },
  });
  const full = await own.send();
  isError(t, full, '429 RATE_LIMIT_EXCEEDED', 'for the capacity of the day');
  t.deepEqual(left(full), ['second 2', 'day 10']);
  t.deepEqual(left(await ask(own)), ['second 1', 'day 9']);
  t.deepEqual(left(await ask(own)), ['second 0', 'day 8']);
  for (let n = 0; n < 3; n++) t.deepEqual(left(await ask(own)), ['second 0', 'day 8'], 'for the rate');
});

// Rate headers.

test('rate headers: the second’s window binds, unless the day’s has fewer left', async (t) => {
  const own = await openTenant(world(), { limits: { requestsPerSecond: 6, requestsPerDay: 5 } });
  t.deepEqual(rate(await ask(own)).slice(0, 2), ['5', '4']);
  const even = await openTenant(world(), { limits: { requestsPerSecond: 5, requestsPerDay: 5 } });
  t.deepEqual(rate(await ask(even)).slice(0, 3), ['5', '4', '1'], 'as many left: the second’s');
});

test('rate headers: where nothing limits, Limit and Remaining are 2147483647 and Reset 0', async (t) => {
  const own = await openTenant(world());
  const nowhere = client(world(), null).call('GET', '/api/public/nowhere');
  const answers = [ask(own), own.send(), own.call('GET', '/api/public/openapi.json'), nowhere];
  for (const answer of await Promise.all([...answers, own.call('GET', '/nowhere')]))
    t.deepEqual(rate(answer), [unlimited, unlimited, '0', null]);
});

test('rate headers: after 10 failed keys in a minute from one address, wrong or missing keys get 429, right ones pass', async (t) => {
  const own = await openTenant(world());
  const [from, another] = [elsewhere(), elsewhere()];
  const [wrong, none] = [client(world(), 'em_x'), client(world(), null)];
  for (let left = 9; left >= 0; left--) {
    const answer = await (left % 2 ? wrong : none).send({}, { from });
    isError(t, answer, '401 UNAUTHORIZED');
    t.deepEqual(rate(answer), ['10', String(left), '60', null]);
  }
  for (const stranger of [wrong, none]) {
    const answer = await stranger.send({}, { from });
    isError(t, answer, '429 RATE_LIMIT_EXCEEDED');
    t.deepEqual(rate(answer), ['10', '0', '60', '60']);
  }
  isSent(t, await own.send({}, { from }));
  isError(t, await wrong.send({}, { from: another }), '401 UNAUTHORIZED');
});

test.serial('rate headers: the window of failed keys is a minute', async (t) => {
  const wrong = client(turned(), 'em_x');
  const from = elsewhere();
  for (let n = 0; n < 10; n++) isError(t, await wrong.send({}, { from }), '401 UNAUTHORIZED');
  await turned().clock.advance('59s');
  const refused = await wrong.send({}, { from });
  isError(t, refused, '429 RATE_LIMIT_EXCEEDED');
  t.deepEqual(rate(refused), ['10', '0', '1', '1']);
  await turned().clock.advance('1s');
  t.deepEqual(rate(await wrong.send({}, { from })), ['10', '9', '60', null]);
});

test('rate headers: RateLimit-Policy and RateLimit ride along with both windows', async (t) => {
  const own = await openTenant(world(), { limits: { requestsPerSecond: 2, requestsPerDay: 5000 } });
  const { headers } = await ask(own);
  t.is(headers.get('ratelimit-policy'), '"second";q=2;w=1, "day";q=5000;w=86400');
  t.regex(headers.get('ratelimit') ?? '', /^"second";r=1;t=1, "day";r=4999;t=\d+$/);
});

// Limits, daily delivery capacity.

test('limits: the operator sets others per organization, unlimited included', async (t) => {
  const own = await openTenant(world(), { limits: 'default' });
  const { json } = cliOf(t, world());
  const limits = `org limits ${own.orgId} --per-day 9 --per-second`;
  await json(`${limits} 4 --emails-per-day 1`);
  t.deepEqual(rate(await ask(own)).slice(0, 2), ['4', '3']);
  isError(t, await own.send({ to: people(2) }), '429 RATE_LIMIT_EXCEEDED');
  await json(`${limits} unlimited --emails-per-day unlimited`);
  await until(async () => rate(await own.send({ to: people(2) }))[0] === '9', { what: 'the day to bind' });
});

test('daily delivery capacity: counts accepted recipients; a call whose accepted recipients do not all fit is 429 whole', async (t) => {
  const own = await openTenant(world(), { quota: 10, limits: { emailsPerDay: 3 } });
  const [gone, ...to] = people(5);
  await own.suppress(gone!);
  t.is((await own.send({ to: [gone, to[0], to[1]] })).body.accepted.length, 2);
  isError(t, await own.send({ to: [gone, to[2], to[3]] }), '429 RATE_LIMIT_EXCEEDED');
  t.deepEqual(await own.books(), { emails: 1, quota: 8, wallet: 0, ledger: 8 });
  isSent(t, await own.send({ to: to[2] }));
  const full = await own.send({ to: to[3] });
  isError(t, full, '429 RATE_LIMIT_EXCEEDED');
  t.is(full.headers.get('retry-after'), String(12 * 60 * 60), 'until midnight');
});

test('daily delivery capacity: a replay and a failed send take none of it', async (t) => {
  const own = await openTenant(world(), { limits: { emailsPerDay: 2 } });
  const mend = await breakSubject(world(), 'capacity');
  const to = someone();
  const first = await own.send({ to });
  isReplay(t, await own.send({ to }), first);
  isError(t, await own.send({ subject: 'capacity' }), '500 SEND_FAILED');
  await mend();
  isSent(t, await own.send());
});

// id, duplicates and replays.

test('replayed send: 200 with the first response’s body, a partial success included; nothing is charged or sent', async (t) => {
  const own = await openTenant(world(), { quota: 1 });
  const to = people(3);
  await own.suppress(to[0]!);
  const first = await own.send({ to, idempotencyKey: 'k' });
  t.deepEqual([first.body.suppressed, first.body.insufficientCredit], [[to[0]], [to[2]]]);
  isReplay(t, await own.send({ to, idempotencyKey: 'k' }), first);
  t.deepEqual(await own.books(), { emails: 1, quota: 0, wallet: 0, ledger: 0 });
  const window = await openTenant(world(), { quota: 1 });
  const plain = await window.send({ to });
  isReplay(t, await window.send({ to }), plain);
});
