/** docs/api.md section 4.1.1: `POST /api/public/email/batch`. */
import test from 'ava';
import { until } from '#lab/until.ts';
import { hasHeaders, isError, isInvalid, rate } from './answer.ts';
import {
  breakSubject,
  type Call,
  mail,
  openTenant,
  people,
  sharedWorld,
  someone,
  type Tenant,
} from './client.ts';

const world = sharedWorld();

const batchPath = '/api/public/email/batch';
const post = (own: Tenant, body: object | string, query = '', options: Call = {}) =>
  own.call('POST', `${batchPath}${query}`, { body, ...options });

interface Result {
  index: number;
  status: number;
  replayed?: true;
  // biome-ignore lint/suspicious/noExplicitAny: what the API says is what the tests look at
  body: any;
}
const said = ({ results }: { results: Result[] }) =>
  results.map(({ status, body }) => `${status} ${body.error ?? 'accepted'}`);

test('each element has the answer of a send by itself, in order, and a bad one does not affect the others', async (t) => {
  const own = await openTenant(world(), { quota: 5 });
  const [gone, later] = people(2);
  await own.suppress(gone!);
  const keyed = mail({ idempotencyKey: 'receipt-1' });
  const scheduledAt = new Date(world().clock.now() + 3_600_000).toISOString();
  const batch = [
    keyed,
    mail({ subject: '' }),
    mail({ from: 'app@elsewhere.invalid' }),
    mail({ to: gone }),
    mail({ to: later, scheduledAt }),
    keyed,
    { ...keyed, subject: 'Another' },
    mail({ to: people(4), reply_to: 'x' }),
    mail(),
    7,
  ];
  const answer = await post(own, batch);
  t.is(answer.status, 200, JSON.stringify(answer.body));
  hasHeaders(t, answer);
  t.deepEqual(said(answer.body), [
    '200 accepted',
    '400 VALIDATION_ERROR',
    '403 DOMAIN_NOT_FOUND',
    '422 ALL_RECIPIENTS_SUPPRESSED',
    '200 accepted',
    '200 accepted',
    '400 BAD_REQUEST',
    '200 accepted',
    '402 INSUFFICIENT_CREDITS',
    '400 VALIDATION_ERROR',
  ]);
  const results: Result[] = answer.body.results;
  t.deepEqual(
    results.map(({ index }) => index),
    [...batch.keys()],
  );
  t.deepEqual(results[1]!.body.issues[0].path, ['subject']);
  t.deepEqual(results[5], { ...results[0], index: 5, replayed: true });
  t.is(results[7]!.body.insufficientCredit.length, 1);
  t.is(answer.headers.get('x-postern-ignored'), '7.reply_to');
  t.like(await own.books(), { emails: 3, quota: 0 });
  for (const index of [0, 7]) {
    const { emailId, accepted } = results[index]!.body;
    for (const recipient of accepted) await tillDelivered(own, emailId, recipient);
  }
  t.is((await own.get(results[4]!.body.emailId)).body.status, 'scheduled');
  t.deepEqual((await post(own, [keyed])).body.results[0], { ...results[0], replayed: true });
});

async function tillDelivered(own: Tenant, emailId: string, address: string) {
  const found = await until(async () => {
    const { recipients } = (await own.get(emailId)).body;
    return recipients.find(
      (one: { address: string; status: string }) => one.address === address && one.status === 'delivered',
    );
  });
  return found;
}

test('atomic: all or none, and the answer is the error of the first bad element, with its index', async (t) => {
  const own = await openTenant(world(), { quota: 3, limits: { emailsPerDay: 4, requestsPerDay: 1000 } });
  const atomic = (batch: object[]) => post(own, batch, '?atomic=true');
  const gone = someone();
  await own.suppress(gone);
  const before = await own.books();
  for (const [bad, expected, index] of [
    [[mail(), mail({ subject: '' }), mail({ text: '' })], '400 VALIDATION_ERROR', 1],
    [[mail(), mail(), mail({ from: 'app@elsewhere.invalid' })], '403 DOMAIN_NOT_FOUND', 2],
    [[mail(), mail({ to: gone })], '422 ALL_RECIPIENTS_SUPPRESSED', 1],
    [[mail(), mail({ to: people(2) }), mail()], '402 INSUFFICIENT_CREDITS', 2],
    [[mail(), mail({ to: people(2) }), mail(), mail({ to: people(4) })], '402 INSUFFICIENT_CREDITS', 2],
  ] as const) {
    const answer = await atomic([...bad]);
    const { index: where, ...body } = answer.body;
    isError(t, { ...answer, body }, expected);
    t.is(where, index, expected);
  }
  t.deepEqual(await own.books(), before);
  const answer = await atomic([mail(), mail({ to: people(2) })]);
  t.deepEqual(said(answer.body), ['200 accepted', '200 accepted']);
  t.is((await own.books()).emails, 2);
});

test('a batch is one call of the second and many of the day; it is refused as a whole if the day is too short', async (t) => {
  const own = await openTenant(world(), {
    limits: { requestsPerSecond: 100, requestsPerDay: 10, emailsPerDay: 4 },
  });
  const first = await post(own, [mail(), mail(), mail({ subject: '' })]);
  t.is(first.status, 200);
  t.deepEqual(rate(first).slice(0, 2), ['10', '7']);
  const usage = () =>
    world().db('daily_usage').where({ org_id: own.orgId }).first('requests', 'second_requests');
  t.deepEqual({ ...(await usage()) }, { requests: 3, second_requests: 1 });
  const long = await post(
    own,
    Array.from({ length: 8 }, () => mail()),
  );
  isError(t, long, '429 RATE_LIMIT_EXCEEDED');
  t.regex(long.body.message, /counts as 8 requests, and 7 of the day's 10 are left/);
  t.deepEqual(rate(long).slice(0, 2), ['10', '7']);
  t.deepEqual({ ...(await usage()) }, { requests: 3, second_requests: 1 }, 'it counts in no window');
  const full = await post(own, [mail({ to: people(3) }), mail()]);
  t.deepEqual(said(full.body), ['429 RATE_LIMIT_EXCEEDED', '200 accepted']);
  t.deepEqual(
    { ...(await usage()) },
    { requests: 4, second_requests: 2 },
    'only the refused element is given back',
  );
  isError(t, await wholly(own, [mail(), mail({ to: people(3) })]), '429 RATE_LIMIT_EXCEEDED');
  t.deepEqual({ ...(await usage()) }, { requests: 4, second_requests: 2 });
});

/** Without the index, which only the error of an atomic batch has. */
async function wholly(own: Tenant, batch: object[]) {
  const answer = await post(own, batch, '?atomic=true');
  const { index: _, ...body } = answer.body;
  return { ...answer, body };
}

test('1 to 100 elements, each at most 20 MiB and the batch 50, and only JSON', async (t) => {
  const own = await openTenant(world());
  isInvalid(t, await post(own, '[ ]'), ['']);
  isInvalid(t, await post(own, mail()), ['']);
  isInvalid(t, await post(own, '"text"'), ['']);
  isInvalid(
    t,
    await post(
      own,
      Array.from({ length: 101 }, () => mail()),
    ),
    [''],
  );
  const one = JSON.stringify(mail());
  for (const broken of [
    '',
    '[',
    '[]]',
    `[${one},]`,
    `[${one}}`,
    `[${one}`,
    `[${one}] 7`,
    `[${one} ${one}]`,
    `[{"to":1],{}]`,
    'what',
  ])
    isError(t, await post(own, broken), '400 BAD_REQUEST', broken);
  isError(t, await post(own, `[${one},{"a":[${'1,'.repeat(10_000)}1]}]`), '400 BAD_REQUEST');
  t.is((await own.books()).emails, 0);

  const all = await post(
    own,
    Array.from({ length: 100 }, () => mail()),
  );
  t.deepEqual(new Set(said(all.body)), new Set(['200 accepted']));
  const content = Buffer.alloc(9 * 1024 * 1024, 'x').toString('base64');
  const attachments = [{ filename: 'a.bin', content }];
  const wide = `[${one.slice(0, -1)},"ignored":"${'x'.repeat(21 * 1024 * 1024)}"},${JSON.stringify(mail({ attachments }))},${JSON.stringify(mail({ attachments }))}]`;
  const large = await post(own, wide);
  t.is(large.status, 200, JSON.stringify(large.body));
  t.deepEqual(said(large.body), ['400 BAD_REQUEST', '200 accepted', '200 accepted']);
  const tooLong = { headers: { 'content-length': String(50 * 1024 * 1024 + 1) } };
  isError(t, await post(own, one, '', tooLong), '400 BAD_REQUEST');
});

test('what would change the meaning of a batch is refused', async (t) => {
  const own = await openTenant(world(), { scopes: ['email:send'] });
  for (const query of ['Atomic=true', 'atomic=1', 'dryRun=true', 'dry_run=true'])
    isInvalid(t, await post(own, [mail()], `?${query}`), [query.split('=')[0]!], query);
  isError(t, await post(own, [mail()], '', { headers: { 'idempotency-key': 'a' } }), '400 BAD_REQUEST');
  const reader = await own.addKey('email:read');
  isError(t, await reader.call('POST', batchPath, { body: [mail()] }), '403 FORBIDDEN');
  t.is((await own.books()).emails, 0);
});

test('a send that cannot be stored fails by itself', async (t) => {
  const own = await openTenant(world(), { quota: 10 });
  const repair = await breakSubject(world(), 'batchfail');
  const batch = [mail(), mail({ subject: 'batchfail' }), mail()];
  t.deepEqual(said((await post(own, batch)).body), ['200 accepted', '500 SEND_FAILED', '200 accepted']);
  const whole = await post(own, [mail(), mail({ subject: 'batchfail' })], '?atomic=true');
  isError(t, whole, '500 SEND_FAILED');
  await repair();
  t.like(await own.books(), { emails: 2, quota: 8 });
});
