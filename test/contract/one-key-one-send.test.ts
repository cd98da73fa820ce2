/** docs/design.md, section 2, the rows idempotencyKey and Duplicate window, sentence by sentence. */
import test, { type ExecutionContext } from 'ava';
import { hasHeaders, isError, isReplay, isSent } from './answer.ts';
import {
  breakSubject,
  openTenant,
  sendPath,
  sharedWorld,
  someone,
  type Tenant,
  turningWorld,
} from './client.ts';

const world = sharedWorld();
const turned = turningWorld();

test('idempotencyKey: per organization, whichever of its keys', async (t) => {
  const own = await openTenant(world());
  const fields = { to: someone(), idempotencyKey: 'k' };
  const first = await own.send(fields);
  isReplay(t, await (await own.addKey('email:send')).send(fields), first);
  const theirs = await (await openTenant(world())).send(fields);
  isSent(t, theirs);
  t.not(theirs.body.emailId, first.body.emailId);
});

test.serial('idempotencyKey: kept as long as the setting says', async (t) => {
  const sender = await openTenant(turned());
  const fields = { to: someone(), idempotencyKey: 'k' };
  const first = await sender.send(fields);
  for (const hours of ['36h', '35h'] as const) {
    await turned().clock.advance(hours);
    isReplay(t, await sender.send(fields), first);
  }
});

/** The same request in other bytes, and another request. */
const raw = {
  from: 'app@sender.invalid',
  to: 'ann@there.invalid',
  subject: 'Hello',
  text: 'Hi',
  tags: { a: '1', b: '2' },
};
const keyed = { ...raw, idempotencyKey: 'k' };
const same: [what: string, body: string][] = [
  ['with spacing', JSON.stringify(keyed, null, 4)],
  ['in another order', JSON.stringify(Object.fromEntries(Object.entries(keyed).reverse()))],
  ['in another order within', JSON.stringify({ ...keyed, tags: { b: '2', a: '1' } })],
  ['with escapes', JSON.stringify(keyed).replace('Hello', '\\u0048ello')],
];
const others: [what: string, body: object][] = [
  ['another text', { ...keyed, text: 'Ho' }],
  ['another subject', { ...keyed, subject: 'Ho' }],
  ['another recipient', { ...keyed, to: 'bob@there.invalid' }],
  ['another sender', { ...keyed, from: 'App <app@sender.invalid>' }],
  ['another tag', { ...keyed, tags: { a: '1', b: '3' } }],
  ['a field more', { ...keyed, html: '<p>Hi</p>' }],
];

for (const [what, body] of same)
  test(`idempotencyKey: the same key with the same request ${what} is a replay`, async (t) => {
    const own = await openTenant(world());
    const first = await own.call('POST', sendPath, { body: keyed });
    isReplay(t, await own.call('POST', sendPath, { body }), first);
  });

for (const [what, body] of others)
  test(`idempotencyKey: the same key with a different request, ${what}, is 400 BAD_REQUEST saying so`, async (t) => {
    const own = await openTenant(world());
    isSent(t, await own.call('POST', sendPath, { body: keyed }));
    const answer = await own.call('POST', sendPath, { body });
    isError(t, answer, '400 BAD_REQUEST');
    t.regex(answer.body.message, /idempotency ?key/i);
  });

async function canBeUsedAgain(
  t: ExecutionContext,
  own: Tenant,
  bad: object,
  code: string,
  repair = async () => {},
) {
  isError(t, await own.send({ ...bad, idempotencyKey: 'again' }), code);
  await repair();
  const answer = await own.send({ idempotencyKey: 'again' });
  isSent(t, answer);
  t.is(answer.headers.get('idempotent-replayed'), null);
}

test('idempotencyKey: 4xx and 5xx answers are not kept, so the key can be used again', async (t) => {
  const own = await openTenant(world());
  await canBeUsedAgain(t, own, { subject: '' }, '400 VALIDATION_ERROR');
  const gone = someone();
  const second = await openTenant(world());
  await second.suppress(gone);
  await canBeUsedAgain(t, second, { to: gone }, '422 ALL_RECIPIENTS_SUPPRESSED');
  const third = await openTenant(world());
  const mend = await breakSubject(world(), 'again');
  await canBeUsedAgain(t, third, { subject: 'again' }, '500 SEND_FAILED', async () => void (await mend()));
});

test('idempotencyKey: the header Idempotency-Key means the same where the body has none', async (t) => {
  const own = await openTenant(world());
  const send = (key: string, fields: object = {}) =>
    own.call('POST', sendPath, { body: { ...raw, ...fields }, headers: { 'idempotency-key': key } });
  const first = await send('k');
  isReplay(t, await send('k'), first);
  isReplay(t, await send('other', { idempotencyKey: 'k' }), first);
  isError(t, await send('k', { text: 'Ho' }), '400 BAD_REQUEST');
  isSent(t, await send('x'.repeat(255)));
  for (const key of ['', 'x'.repeat(256)]) {
    const answer = await send(key);
    t.is(answer.status, 400);
    hasHeaders(t, answer);
  }
});

// Duplicate window.

test('duplicate window: over the recipients normalised and sorted', async (t) => {
  const own = await openTenant(world());
  const first = await own.send({ to: ['ann@nowhere.invalid', 'bob@bücher.invalid'] });
  isSent(t, first);
  for (const to of [
    ['bob@bücher.invalid', 'ann@nowhere.invalid'],
    ['ANN@nowhere.INVALID', 'Bob@xn--bcher-kva.invalid', 'ann@nowhere.invalid'],
  ])
    isReplay(t, await own.send({ to }), first);
});

test('duplicate window: only among sends without an idempotencyKey', async (t) => {
  const own = await openTenant(world());
  const to = someone();
  const ids = new Set<string>();
  for (const fields of [{}, { idempotencyKey: 'a' }, { idempotencyKey: 'b' }]) {
    const answer = await own.send({ to, ...fields });
    isSent(t, answer);
    ids.add(answer.body.emailId);
  }
  t.is(ids.size, 3);
  const other = await openTenant(world());
  const keyed = await other.send({ to, idempotencyKey: 'a' });
  t.not((await other.send({ to })).body.emailId, keyed.body.emailId);
});

test('duplicate window: a refused send is none to be a duplicate of', async (t) => {
  const own = await openTenant(world(), { quota: 0, wallet: 0 });
  const to = someone();
  isError(t, await own.send({ to }), '402 INSUFFICIENT_CREDITS');
  isError(t, await own.send({ to }), '402 INSUFFICIENT_CREDITS');
});
