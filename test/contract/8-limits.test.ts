/**
 * docs/api.md, section 8: limits and the rate-limit headers. The windows of time are the organization's own, and the
 * clock stands still at noon; tests that turn it run alone, before the others.
 */
import test, { type ExecutionContext } from 'ava';
import { cliOf } from '../lab/cli.ts';
import type { Answer, World } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';
import { isError, isInvalid, isSent, rate } from './answer.ts';
import {
  breakSubject,
  client,
  elsewhere,
  nobodysId,
  openTenant,
  people,
  sendPath,
  sharedWorld,
  type Tenant,
} from './client.ts';

const day = 86_400_000;
const toMidnight = ({ clock }: World) => day - (clock.now() % day);

const world = sharedWorld({}, async (made) => {
  await made.clock.advance(toMidnight(made) + day / 2);
});
const noon = String(day / 2 / 1000);

/** A call that costs nothing but a request. */
const ask = (who: Tenant) => who.get(nobodysId);

/** As if so much had been used today; one request was made before. */
async function used(who: Tenant, usage: { requests?: number; emails?: number }) {
  const rows = await world().db('daily_usage').where({ org_id: who.orgId }).update(usage);
  if (rows !== 1) throw new Error(`${rows} days of use`);
}

const refused = (t: ExecutionContext, answer: Answer) => isError(t, answer, '429 RATE_LIMIT_EXCEEDED');

// The clock turns; the last of these sets it to noon again.

test.serial('8 request rate: 2 requests per second, and again in the next second', async (t) => {
  const own = await openTenant(world(), { limits: 'default' });
  for (let second = 0; second < 3; second++) {
    t.deepEqual(rate(await ask(own)), ['2', '1', '1', null]);
    t.deepEqual(rate(await ask(own)), ['2', '0', '1', null]);
    const third = await ask(own);
    refused(t, third);
    t.deepEqual(rate(third), ['2', '0', '1', '1']);
    await world().clock.advance('1s');
  }
});

test.serial('8 daily requests and daily delivery capacity: reset at 00:00:00 UTC', async (t) => {
  const own = await openTenant(world(), { limits: { requestsPerDay: 1 } });
  const busy = await openTenant(world(), { limits: { emailsPerDay: 1 } });
  await ask(own);
  isSent(t, await busy.send());
  await world().clock.advance(toMidnight(world()) - 1);
  const last = await ask(own);
  refused(t, last);
  t.deepEqual(rate(last), ['1', '0', '1', '1']);
  refused(t, await busy.send());
  await world().clock.advance(1);
  t.is((await ask(own)).status, 404);
  isSent(t, await busy.send());
  await world().clock.advance(day / 2);
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

test('8 daily delivery capacity: 5,000 emails per day', async (t) => {
  const own = await openTenant(world(), { limits: { emailsPerDay: 5000 } });
  isSent(t, await own.send());
  await used(own, { emails: 4998 });
  refused(t, await own.send({ to: people(3) }));
  isSent(t, await own.send({ to: people(2) }));
  const full = await own.send();
  refused(t, full);
  t.is(full.headers.get('retry-after'), noon);
});

test('8 the defaults of a new organization: 2 a second, 5,000 requests and 5,000 emails a day', async (t) => {
  const { json } = cliOf(t, world());
  const { id } = await json('org create --name New');
  const { limits } = await json(`org show ${id}`);
  t.deepEqual(limits, { perSecond: 2, perDay: 5000, emailsPerDay: 5000 });
});

test('8 recipients per send call: 10, counts as 1 request', async (t) => {
  const own = await openTenant(world(), { limits: { requestsPerSecond: 3 } });
  const to = people(10);
  const answer = await own.send({ to });
  isSent(t, answer, to);
  t.is(rate(answer)[1], '2');
  isInvalid(t, await own.send({ to: people(11) }), ['to']);
});

// Sizes, each just within and just beyond.

const x = (length: number) => 'x'.repeat(length);
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-${n}`, 'v']));
const file = (size: number) => ({ filename: 'a', content: Buffer.alloc(size).toString('base64') });

const sizes: [limit: string, within: object[], beyond: object[]][] = [
  [
    'subject length: 1 to 998 characters',
    [{ subject: x(1) }, { subject: x(998) }],
    [{ subject: '' }, { subject: x(999) }],
  ],
  [
    'attachments total payload: 10 MB',
    [{ attachments: [file(5 * 2 ** 20), file(5 * 2 ** 20)] }],
    [{ attachments: [file(5 * 2 ** 20), file(5 * 2 ** 20 + 1)] }],
  ],
  ['custom headers: 10 pairs', [{ headers: pairs(10) }], [{ headers: pairs(11) }]],
  ['tags: 10 pairs', [{ tags: pairs(10) }], [{ tags: pairs(11) }]],
  ['tags: key 64 characters', [{ tags: { [x(64)]: 'v' } }], [{ tags: { [x(65)]: 'v' } }]],
  ['tags: value 256 characters', [{ tags: { a: x(256) } }], [{ tags: { a: x(257) } }]],
  ['idempotencyKey length: 255 characters', [{ idempotencyKey: x(255) }], [{ idempotencyKey: x(256) }]],
];

for (const [limit, within, beyond] of sizes) {
  test(`8 ${limit}`, async (t) => {
    const own = await openTenant(world());
    for (const fields of within) isSent(t, await own.send({ to: people(1, 'nowhere.invalid'), ...fields }));
    for (const fields of beyond) isError(t, await own.send(fields), '400 VALIDATION_ERROR');
  });
}

// The headers.

type Ask = (own: Tenant, made: World) => Promise<Answer>;

/** Every status that there is; each answer's headers are looked at. */
const everyStatus: [status: number, ask: Ask][] = [
  [200, (own) => own.send()],
  [200, (own) => own.call('GET', '/api/public/openapi.json')],
  [400, (own) => own.send({ subject: '' })],
  [400, (own) => own.send({}, { body: '{' })],
  [400, (own) => own.get('1')],
  [401, (_, made) => client(made, 'em_x').get(nobodysId)],
  [402, async (_, made) => (await openTenant(made, { quota: 0 })).send()],
  [403, async (own) => (await own.addKey('email:read')).send()],
  [403, (own) => own.send({ from: 'a@nobodys.invalid' })],
  [404, (own) => ask(own)],
  [404, (own) => own.call('GET', '/nothing')],
  [405, (own) => own.call('PUT', sendPath)],
  [
    422,
    async (own) => {
      await own.suppress('gone@there.invalid');
      return own.send({ to: 'gone@there.invalid' });
    },
  ],
  [
    429,
    async (_, made) => {
      const slow = await openTenant(made, { limits: { requestsPerSecond: 1 } });
      await ask(slow);
      return ask(slow);
    },
  ],
  [
    429,
    async (_, made) => {
      const slow = await openTenant(made, { limits: { emailsPerDay: 1 } });
      return slow.send({ to: people(2) });
    },
  ],
  [
    500,
    async (own, made) => {
      const mend = await breakSubject(made, 'limits500');
      const answer = await own.send({ subject: 'limits500' });
      await mend();
      return answer;
    },
  ],
];

for (const [index, [status, provoke]] of everyStatus.entries()) {
  test(`8 X-RateLimit-Limit, -Remaining and -Reset are on every response, Retry-After only on 429: ${status} (${index})`, async (t) => {
    const answer = await provoke(await openTenant(world()), world());
    t.is(answer.status, status);
    const [limit, remaining, reset, retryAfter] = rate(answer);
    for (const value of [limit, remaining, reset]) t.regex(value ?? 'none', /^\d+$/);
    t.true(Number(remaining) <= Number(limit));
    if (status === 429) t.regex(retryAfter ?? 'none', /^[1-9]\d*$/);
    else t.is(retryAfter ?? null, null);
  });
}

test('8 X-RateLimit-Limit: maximum requests in the current window (2 or 5000)', async (t) => {
  const own = await openTenant(world(), { limits: 'default' });
  t.is(rate(await ask(own))[0], '2');
  await used(own, { requests: 4999 });
  t.is(rate(await ask(own))[0], '2', 'none is left of both: the second binds');
  const last = await openTenant(world(), { limits: 'default' });
  await ask(last);
  await used(last, { requests: 5000 });
  t.is(rate(await ask(last))[0], '5000');
});

test('8 X-RateLimit-Remaining: requests remaining in the current window', async (t) => {
  const own = await openTenant(world(), { limits: { requestsPerSecond: 5, requestsPerDay: 7 } });
  const seen: unknown[] = [];
  for (let n = 0; n < 6; n++)
    seen.push(
      rate(await ask(own))
        .slice(0, 2)
        .join(),
    );
  t.deepEqual(seen, ['5,4', '5,3', '5,2', '5,1', '5,0', '5,0']);
});

test('8 X-RateLimit-Reset: seconds until the current window resets', async (t) => {
  const second = await openTenant(world(), { limits: { requestsPerSecond: 5 } });
  t.is(rate(await ask(second))[2], '1');
  const daily = await openTenant(world(), { limits: { requestsPerDay: 5 } });
  t.is(rate(await ask(daily))[2], noon);
});

test('8 Retry-After: seconds to wait before retrying', async (t) => {
  const second = await openTenant(world(), { limits: { requestsPerSecond: 1 } });
  const daily = await openTenant(world(), { limits: { requestsPerDay: 1 } });
  for (const own of [second, daily]) await ask(own);
  t.is(rate(await ask(second))[3], '1');
  t.is(rate(await ask(daily))[3], noon);
});

test('8 maximum size of the html and text bodies (design): 2 MiB of UTF-8 each', async (t) => {
  const own = await openTenant(world());
  const [within, beyond] = [x(2 ** 21), x(2 ** 21 + 1)];
  for (const field of ['html', 'text']) {
    isSent(t, await own.send({ to: people(1, 'nowhere.invalid'), [field]: within }));
    isInvalid(t, await own.send({ [field]: beyond }), [field]);
  }
});

test('8 automatic duplicate window: 2 seconds', async (t) => {
  const own = await openTenant(world());
  const to = people(1);
  const [first, second] = [await own.send({ to }), await own.send({ to })];
  t.is(second.body.emailId, first.body.emailId);
});

test('8 a limit that the operator changes holds within a second', async (t) => {
  const own = await openTenant(world());
  t.is(rate(await ask(own))[0], '2147483647');
  await cliOf(t, world()).json(`org limits ${own.orgId} --per-second 7`);
  await until(async () => rate(await ask(own))[0] === '7', { what: 'the new limit' });
  t.pass();
});

test('8 a wrong key is told of its own window', async (t) => {
  const answer = await client(world(), 'em_x').call('GET', '/api/public/email/1', { from: elsewhere() });
  isError(t, answer, '401 UNAUTHORIZED');
  t.deepEqual(rate(answer), ['10', '9', '60', null]);
});
