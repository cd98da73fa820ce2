/** docs/api.md, section 8: limits and the rate-limit headers. Sizes of fields are held in fields-arrive.test.ts. */
import test, { type ExecutionContext } from 'ava';
import { cliOf } from '#lab/cli.ts';
import type { Answer } from '#lab/scenes/world.ts';
import { isError, isSent, rate } from './answer.ts';
import { nobodysId, openTenant, sharedWorld, type Tenant, toMidnight, turningWorld } from './client.ts';

const world = sharedWorld();
const turned = turningWorld();
const noon = String(12 * 60 * 60);

/** A call that costs nothing but a request. */
const ask = (who: Tenant) => who.get(nobodysId);

/** As if so much had been used today; one request was made before. */
async function used(who: Tenant, usage: { requests: number }) {
  const rows = await world().db('daily_usage').where({ org_id: who.orgId }).update(usage);
  if (rows !== 1) throw new Error(`${rows} days of use`);
}

const refused = (t: ExecutionContext, answer: Answer) => isError(t, answer, '429 RATE_LIMIT_EXCEEDED');

// The clock turns.

test.serial('8 request rate: 2 requests per second, and again in the next second', async (t) => {
  const own = await openTenant(turned(), { limits: 'default' });
  for (let second = 0; second < 3; second++) {
    t.deepEqual(rate(await ask(own)), ['2', '1', '1', null]);
    t.deepEqual(rate(await ask(own)), ['2', '0', '1', null]);
    const third = await ask(own);
    refused(t, third);
    t.deepEqual(rate(third), ['2', '0', '1', '1']);
    await turned().clock.advance('1s');
  }
});

test.serial('8 daily requests and daily delivery capacity: reset at 00:00:00 UTC', async (t) => {
  const own = await openTenant(turned(), { limits: { requestsPerDay: 1 } });
  const busy = await openTenant(turned(), { limits: { emailsPerDay: 1 } });
  await ask(own);
  isSent(t, await busy.send());
  await turned().clock.advance(toMidnight(turned()) - 1);
  const last = await ask(own);
  refused(t, last);
  t.deepEqual(rate(last), ['1', '0', '1', '1']);
  refused(t, await busy.send());
  await turned().clock.advance(1);
  t.is((await ask(own)).status, 404);
  isSent(t, await busy.send());
});

// Requests.

test('8 limits are enforced per organization: its keys share them, another has its own', async (t) => {
  const [own, other] = [
    await openTenant(world(), { limits: { requestsPerSecond: 2 } }),
    await openTenant(world(), { limits: { requestsPerSecond: 2 } }),
  ];
  const second = await own.addKey('email:read');
  t.is((await own.get(nobodysId)).status, 404);
  t.is((await second.get(nobodysId)).status, 404);
  for (const key of [own, second]) refused(t, await key.get(nobodysId));
  t.is((await ask(other)).status, 404);
});

test('8 request rate: sends and reads count alike, twenty at once pass it exactly', async (t) => {
  const own = await openTenant(world(), { limits: 'default' });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => (n % 2 ? own.send() : ask(own))));
  t.is(answers.filter(({ status }) => status !== 429).length, 2);
});

test('8 daily requests: 5,000 per day', async (t) => {
  const own = await openTenant(world(), { limits: { requestsPerDay: 5000 } });
  t.deepEqual(rate(await ask(own)), ['5000', '4999', noon, null]);
  await used(own, { requests: 4999 });
  const last = await ask(own);
  t.is(last.status, 404);
  t.deepEqual(rate(last), ['5000', '0', noon, null]);
  const over = await ask(own);
  refused(t, over);
  t.deepEqual(rate(over), ['5000', '0', noon, noon]);
});

test('8 the defaults of a new organization: 2 a second, 5,000 requests and 5,000 emails a day', async (t) => {
  const { json } = cliOf(t, world());
  const { id } = await json('org create --name New');
  const { limits } = await json(`org show ${id}`);
  t.deepEqual(limits, { perSecond: 2, perDay: 5000, emailsPerDay: 5000 });
});
