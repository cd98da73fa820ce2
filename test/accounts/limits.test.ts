import test from 'ava';
import { registerDomain } from '../../src/accounts/domain-registration.ts';
import { makeUserLink } from '../../src/accounts/people.ts';
import { createSeal } from '../../src/accounts/seal.ts';
import { newId } from '../../src/base/id.ts';
import { fixedSecrets } from '../../src/base/secrets.ts';
import type { ParseResult } from '../../src/bounces/parse/parse-result.ts';
import { setLimits } from '../../src/db/accounts/organizations.ts';
import { insertUser } from '../../src/db/accounts/users.ts';
import { keepMail } from '../../src/db/bounces/inbound-mails.ts';
import { type Answer, startWorld, type World } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

const id = '00000000-0000-7000-8000-000000000000';

/** A call that costs nothing but a request. */
const ask = (world: World) => world.call('GET', `/api/public/email/${id}`);

async function limit(world: World, limits: Parameters<typeof setLimits>[2]) {
  const [{ id: orgId }] = await world.db('organizations').select('id');
  await setLimits(world.db, orgId, limits);
  // The limits of the first request's key are known for a second.
  await until(async () => (await ask(world)).headers.get('x-ratelimit-limit') !== '2147483647', {
    what: 'the limits',
  });
  await world.db('daily_usage').delete();
}

const rate = ({ status, headers }: Answer) => [
  status,
  headers.get('x-ratelimit-limit'),
  headers.get('x-ratelimit-remaining'),
  headers.get('x-ratelimit-reset'),
  headers.get('retry-after'),
];

test('of many that are added at once, no more are taken than there may be', async (t) => {
  const world = await startWorld(t);
  const { db } = world;
  const [{ id: org_id }] = await db('organizations').select('id');
  const post = (path: string, body: object) =>
    world.call('POST', `/api/public/${path}`, { body: JSON.stringify(body) });
  const webhook = (n: number) => post('webhooks', { url: `https://app.invalid/${n}` });
  const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => webhook(n)));
  t.is(answers.filter(({ status }) => status === 200).length, 50);
  t.is((await db('webhooks')).length, 50);
  t.regex((await webhook(60)).body.message, /has 50 webhooks; remove one first/);

  const domain = { dkim_selector: 's', dkim_public_key: '', dkim_private_key: '', created_at: 0 };
  const domains = Array.from({ length: 997 }, (_, n) => ({
    ...domain,
    id: newId(),
    org_id,
    name: `d${n}.invalid`,
    status: 'pending',
  }));
  await db.batchInsert('domains', domains, 90);
  const terms = { seal: createSeal(fixedSecrets('a secret of this test')), now: 0, byOwner: true };
  const names = ['a.invalid', 'b.invalid', 'c.invalid', 'd.invalid', 'e.invalid', 'e.invalid'];
  const register = (name: string) => registerDomain(db, { orgId: org_id, name }, terms);
  const added = await Promise.allSettled(names.map(register));
  t.is(added.filter(({ status }) => status === 'rejected').length, 4);
  t.is((await db('domains').where({ org_id })).length, 1000);

  const person = { email: 'ann@postern.invalid', name: 'Ann', isOperator: false };
  const userId = (await insertUser(db, person, 0))!;
  const links = Array.from({ length: 8 }, () => makeUserLink(db, { id: userId }, 'reset', 0));
  await Promise.all(links);
  t.is((await db('one_time_tokens').where({ user_id: userId })).length, 1, 'a new link ends those before');

  await world.send({ to: 'ann@there.invalid' });
  const [{ id: deliveryId }] = await db('deliveries').select('id');
  const mail = {
    sender: '',
    recipient: 'b@x.invalid',
    peer: '127.0.0.1',
    at: 0,
    size: 1,
    raw: Buffer.from('x'),
  };
  const letter: ParseResult = { is: 'letter' };
  const kept = Array.from({ length: 8 }, () => keepMail(db, mail, deliveryId, letter));
  t.is((await Promise.all(kept)).filter((one) => one).length, 3);
  t.is((await db('inbound_mails').where({ delivery_id: deliveryId })).length, 3);
});

test('two requests a second, the third is 429 and says when to come again', async (t) => {
  const world = await startWorld(t);
  await limit(world, { requestsPerSecond: 2, requestsPerDay: 5000 });
  await world.clock.advance('5s');
  t.deepEqual(rate(await ask(world)), [404, '2', '1', '1', null]);
  t.deepEqual(rate(await ask(world)), [404, '2', '0', '1', null]);
  const refused = await ask(world);
  t.deepEqual(rate(refused), [429, '2', '0', '1', '1']);
  t.is(refused.body.error, 'RATE_LIMIT_EXCEEDED');
  t.regex(refused.headers.get('ratelimit-policy')!, /"second";q=2;w=1, "day";q=5000;w=86400/);
  t.regex(
    refused.headers.get('ratelimit')!,
    /"second";r=0;t=1, "day";r=4998;t=\d+/,
    'a refused one counts nowhere',
  );
  await world.clock.advance('1s');
  t.is((await ask(world)).status, 404);
});

test('the day’s count binds when it has fewer left, survives a restart, and ends at midnight UTC', async (t) => {
  const world = await startWorld(t);
  await limit(world, { requestsPerSecond: 100, requestsPerDay: 3 });
  for (const remaining of ['2', '1', '0']) t.is(rate(await ask(world))[2], remaining);
  await world.restart();
  const refused = await ask(world);
  t.is(refused.status, 429);
  t.is(refused.headers.get('x-ratelimit-limit'), '3');
  const toMidnight = 86_400_000 - (world.clock.now() % 86_400_000);
  t.is(refused.headers.get('retry-after'), String(Math.ceil(toMidnight / 1000)));
  await world.clock.advance(toMidnight);
  t.is((await ask(world)).status, 404);
});

test('a call whose recipients do not all fit the day’s capacity is 429 whole, and counts nowhere', async (t) => {
  const world = await startWorld(t);
  await limit(world, { requestsPerSecond: 1000, requestsPerDay: 1000, emailsPerDay: 3 });
  t.is((await world.send({ to: ['a@there.invalid', 'b@there.invalid'] })).status, 200);
  const refused = await world.send({ to: ['c@there.invalid', 'd@there.invalid'] });
  t.is(refused.status, 429);
  t.true(Number(refused.headers.get('retry-after')) > 0);
  const [usage] = await world.db('daily_usage').select('requests', 'emails');
  t.deepEqual({ ...usage }, { requests: 1, emails: 2 });
  t.is((await world.send({ to: 'c@there.invalid' })).status, 200);
});

test('fifty requests at once pass the limit exactly', async (t) => {
  const world = await startWorld(t);
  await limit(world, { requestsPerSecond: 7, requestsPerDay: null });
  await world.clock.advance('5s');
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask(world)));
  t.is(answers.filter(({ status }) => status === 404).length, 7);
});

test('a call with a right key counts, wherever it leads; one without a key that leads nowhere is 404', async (t) => {
  const world = await startWorld(t);
  await limit(world, { requestsPerSecond: null, requestsPerDay: 9 });
  t.deepEqual(rate(await world.call('GET', '/api/public/nowhere')).slice(0, 3), [404, '9', '8']);
  t.deepEqual(rate(await world.call('PUT', '/api/public/email/send')).slice(0, 3), [405, '9', '7']);
  t.deepEqual(rate(await world.call('POST', '/api/public/email/send', { body: '{' })).slice(0, 3), [
    400,
    '9',
    '6',
  ]);
  const nobody = { headers: { authorization: '' } };
  t.deepEqual(rate(await world.call('GET', '/api/public/nowhere', nobody)).slice(0, 2), [404, '2147483647']);
  t.deepEqual(rate(await world.call('GET', '/nowhere')).slice(0, 2), [404, '2147483647']);
});

test('where nothing limits, the headers say so', async (t) => {
  const world = await startWorld(t);
  t.deepEqual(rate(await ask(world)), [404, '2147483647', '2147483647', '0', null]);
  t.is((await world.call('GET', '/nowhere')).headers.get('x-ratelimit-limit'), '2147483647');
});

test('ten wrong keys a minute from one address, then 429; the right key passes', async (t) => {
  const world = await startWorld(t);
  const wrong = () =>
    world.call('GET', `/api/public/email/${id}`, { headers: { authorization: 'Bearer em_wrong' } });
  for (let left = 9; left >= 0; left--)
    t.deepEqual(rate(await wrong()), [401, '10', String(left), '60', null]);
  t.deepEqual(rate(await wrong()), [429, '10', '0', '60', '60']);
  t.is((await ask(world)).status, 404);
  await world.clock.advance('1m');
  t.is((await wrong()).status, 401);
});

test('with the capacity of the day used up and no credits left, the capacity is reported', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 0 } });
  await limit(world, { requestsPerSecond: 100, requestsPerDay: 5000, emailsPerDay: 0 });
  const { status, body } = await world.send({ to: 'ann@there.invalid' });
  t.deepEqual([status, body.error], [429, 'RATE_LIMIT_EXCEEDED']);
});
