/** Composing on threads: every order is answered once, whatever happens to its thread. */
import { tmpdir } from 'node:os';
import { Worker } from 'node:worker_threads';
import test, { type ExecutionContext } from 'ava';
import { dkimVerify } from 'mailauth';
import { createSeal } from '#accounts/seal.ts';
import { dkimKey } from '#lab/dkim.ts';
import { until } from '#lab/until.ts';
import type { ComposeOrder } from '#mail/compose/compose-order.ts';
import { createComposers } from '#mail/compose/compose-threads.ts';
import type { Fields } from '#mail/compose/mime.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { fixedSecrets } from '#platform/base/secrets.ts';
import { parseMailbox } from '#platform/values/address.ts';
import { Refusal } from '#platform/values/refusal.ts';

const secret = 'a secret of the tests, long enough';
const sealedKey = createSeal(fixedSecrets(secret)).close(dkimKey.privateKey);
const deliveryId = '01980000-0000-7000-8000-000000000000';

function createOrder(fields: Partial<Fields> = {}, more: Partial<ComposeOrder> = {}): ComposeOrder {
  return {
    orgId: 'org',
    fields: {
      from: parseMailbox('App <app@sender.invalid>')!,
      to: [{ name: '', address: 'ann@there.invalid' }],
      subject: 'Hello',
      text: 'Hello',
      attachments: [],
      headers: {},
      messageId: 'id@postern.invalid',
      date: Date.UTC(2026, 0, 2, 3, 4, 5),
      ...fields,
    },
    tracking: { opens: false, clicks: false, base: 'http://track.invalid', deliveryIds: [deliveryId] },
    signer: { domain: 'sender.invalid', selector: dkimKey.selector, sealedKey },
    ...more,
  };
}

/** Keeps a thread busy for some time. */
const long = { text: 'é'.repeat(900_000) };

const program = new URL('../../src/server/compose-thread.ts', import.meta.url);

function startComposers(
  t: ExecutionContext,
  { count = 1, url = program, timeoutMs }: { count?: number; url?: URL; timeoutMs?: number } = {},
) {
  const threads: Worker[] = [];
  const errors: unknown[] = [];
  const composers = createComposers({
    spawn() {
      const thread = new Worker(url, { workerData: { dataDir: tmpdir(), secret, secretOthers: [] } });
      threads.push(thread);
      return thread;
    },
    count,
    timeoutMs,
    onError: (_what, error) => errors.push(error),
  });
  t.teardown(() => composers.close());
  return { ...composers, threads, errors };
}

async function dkimResult(raw: Buffer): Promise<string | undefined> {
  const resolver = async () => [[`v=DKIM1; k=rsa; p=${dkimKey.publicKey}`]];
  return (await dkimVerify(raw, { resolver })).results[0]?.status.result;
}

test('each of many concurrent orders gets its own signed message', async (t) => {
  const { compose, threads } = startComposers(t, { count: 2 });
  const made = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      compose(createOrder({ subject: `Number ${n}.`, messageId: `${n}@x.invalid` })),
    ),
  );
  for (const [n, { messageId, messages }] of made.entries()) {
    t.is(messageId, `${n}@x.invalid`);
    t.is(messages.length, 1);
    t.true(Buffer.isBuffer(messages[0]));
    t.true(messages[0]!.includes(`Subject: Number ${n}.\r\n`));
    t.is(await dkimResult(messages[0]!), 'pass');
  }
  t.is(threads.length, 2);
});

test('mails one after the other need one thread', async (t) => {
  const { compose, threads } = startComposers(t, { count: 4 });
  await compose(createOrder());
  await compose(createOrder());
  t.is(threads.length, 1);
});

test('attachments arrive unchanged: small, large, and the same one twice', async (t) => {
  const { compose } = startComposers(t);
  const small = Buffer.from('small');
  const large = Buffer.alloc(300_000, 'large ');
  const expected = [small, large, large].map((content) => content.toString('base64'));
  const attachments = [small, large, large].map((content, n) => ({ filename: `${n}.bin`, content }));
  const { messages } = await compose(createOrder({ attachments }));
  const text = messages[0]!.toString('latin1').replaceAll('\r\n', '');
  for (const content of expected) t.true(text.includes(content));
  t.is(text.split(expected[1]!).length, 3);
  t.is(small.toString(), 'small', 'memory that is shared with other buffers is copied');
  t.is(large.length, 0, 'memory of its own is transferred, not copied');
});

test('tracking links are made in the thread', async (t) => {
  const { compose } = startComposers(t);
  const html = '<a href="https://app.invalid/">x</a>';
  const tracking = { opens: true, clicks: true, base: 'http://track.invalid', deliveryIds: [deliveryId] };
  const { messages } = await compose(createOrder({ html, text: undefined }, { tracking }));
  const body = messages[0]!.toString('latin1').replaceAll('=\r\n', '').replaceAll('=3D', '=');
  const [, token] = /http:\/\/track\.invalid\/t\/c\/([\w-]+)/.exec(body)!;
  t.deepEqual(createTrackingLinks(fixedSecrets(secret)).read('click', token!), {
    deliveryId,
    target: 'https://app.invalid/',
  });
});

/** The names of the orders in the order in which they are answered. */
async function answered(orders: [name: string, Promise<unknown>][]): Promise<string[]> {
  const names: string[] = [];
  await Promise.all(orders.map(([name, order]) => order.then(() => names.push(name))));
  return names;
}

test('an order of another organization does not wait for many orders', async (t) => {
  const { compose } = startComposers(t);
  const crowd = Array.from({ length: 300 }, (): [string, Promise<unknown>] => [
    'big',
    compose(createOrder()),
  ]);
  const names = await answered([...crowd, ['small', compose(createOrder({}, { orgId: 'another' }))]]);
  const place = names.indexOf('small');
  t.true(place < 50, `it was number ${place}`);
});

test('a small order does not wait for large ones of any organization', async (t) => {
  const { compose, threads } = startComposers(t);
  await compose(createOrder());
  const large = Array.from({ length: 12 }, (): [string, Promise<unknown>] => [
    'large',
    compose(createOrder(long)),
  ]);
  const names = await answered([...large, ['small', compose(createOrder())]]);
  t.true(names.indexOf('small') < 12, names.join());
  t.is(threads.length, 2);
});

test('an organization that fills the queue leaves another its share', async (t) => {
  const { compose, close } = startComposers(t);
  const ordersOf = (orgId: string, count: number) =>
    Array.from({ length: count }, () => compose(createOrder({}, { orgId })));
  const [first, other, again] = [ordersOf('a', 1000), ordersOf('b', 501), ordersOf('a', 1)].map((list) =>
    Promise.allSettled(list),
  );
  await close();
  const refused = async (results: typeof first) =>
    (await results!).filter((one) => one.status === 'rejected' && one.reason instanceof Refusal).length;
  t.deepEqual([await refused(first), await refused(other), await refused(again)], [0, 1, 1]);
});

test('an order that cannot be signed fails alone', async (t) => {
  const { compose, errors } = startComposers(t);
  const broken = {
    domain: 'sender.invalid',
    selector: 's',
    sealedKey: createSeal(fixedSecrets(secret)).close('no key'),
  };
  const foreign = {
    ...broken,
    sealedKey: createSeal(fixedSecrets('another secret, as long as that')).close(dkimKey.privateKey),
  };
  const results = await Promise.allSettled([
    compose(createOrder()),
    compose(createOrder({}, { signer: broken })),
    compose(createOrder({}, { signer: foreign })),
    compose(createOrder()),
  ]);
  t.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
  );
  t.deepEqual(errors, []);
});

test('an order that cannot be cloned to a thread fails alone', async (t) => {
  const { compose } = startComposers(t);
  const uncloneable = { 'X-A': (() => {}) as unknown as string };
  await t.throwsAsync(compose(createOrder({ headers: uncloneable })), { name: 'DataCloneError' });
  await t.notThrowsAsync(compose(createOrder()));
});

test('if a thread dies, its orders fail and the next order starts another', async (t) => {
  const { compose, threads, errors } = startComposers(t);
  await compose(createOrder(long));
  const lost = Promise.allSettled(Array.from({ length: 8 }, () => compose(createOrder(long))));
  // The orders are sent at the end of this turn of the event loop.
  setImmediate(() => threads[0]!.terminate());
  t.true((await lost).some(({ status }) => status === 'rejected'));
  t.is(await dkimResult((await compose(createOrder(long))).messages[0]!), 'pass');
  t.is(threads.length, 2);
  t.is(errors.length, 1);
});

/** Composes as the real one does, but for mails with these subjects. */
const trap = `
  import { parentPort } from 'node:worker_threads';
  import { serveOrders } from ${JSON.stringify(new URL('../../src/mail/compose/compose-threads.ts', import.meta.url).href)};
  serveOrders(parentPort, ({ fields: { subject } }) => {
    if (subject === 'hang') for (;;);
    if (subject === 'die') process.exit(1);
    return { messages: [Buffer.from(subject)], base: null, packed: Buffer.from(subject), messageId: 'id', trackedLinks: null };
  });`;

test('a mail that hangs or kills its thread is refused, and the others on that thread are composed again', async (t) => {
  const url = new URL(`data:text/javascript,${encodeURIComponent(trap)}`);
  const { compose, threads, errors } = startComposers(t, { url, timeoutMs: 2_000 });
  await compose(createOrder({ subject: 'first' }));
  const subjects = ['a', 'b', 'hang', 'c', 'd', 'e', 'f', 'g', 'h', 'die', 'i', 'j'];
  const made = await Promise.allSettled(
    subjects.map((subject, index) => compose(createOrder({ subject }, { orgId: `org ${index}` }))),
  );
  t.deepEqual(
    made.map((one) => (one.status === 'fulfilled' ? String(one.value.messages[0]) : 'refused')),
    subjects.map((subject) => (subject.length === 1 ? subject : 'refused')),
  );
  const [, , hung, , , , , , , killed] = made as PromiseRejectedResult[];
  t.is(hung!.reason.code, 'BAD_REQUEST');
  t.regex(hung!.reason.message, /^The email takes longer than 2 s to compose/);
  t.regex(killed!.reason.message, /thread died/);
  t.is(threads.length, 3);
  t.is(errors.length, 2);
});

test('a large mail that hangs is refused, and the next one is composed', async (t) => {
  const url = new URL(`data:text/javascript,${encodeURIComponent(trap)}`);
  const { compose } = startComposers(t, { url, timeoutMs: 2_000 });
  const hung = compose(createOrder({ ...long, subject: 'hang' }));
  const small = compose(createOrder({ subject: 'small' }));
  const next = compose(createOrder({ ...long, subject: 'next' }));
  t.is(String((await small).messages[0]), 'small');
  await t.throwsAsync(hung, { message: /takes longer than 2 s/ });
  t.is(String((await next).messages[0]), 'next');
});

test('a thread that cannot start is tried again at the next order, not in a loop', async (t) => {
  const { compose, threads, errors } = startComposers(t, { url: new URL('./none.ts', program) });
  await t.throwsAsync(compose(createOrder()));
  await t.throwsAsync(compose(createOrder()));
  t.is(threads.length, 2);
  await until(() => errors.length === 2);
  t.regex(String(errors[0]), /none\.ts/);
});

test('beyond a thousand waiting orders the caller is told to retry', async (t) => {
  const { compose, close } = startComposers(t);
  const results = Promise.allSettled(Array.from({ length: 1005 }, () => compose(createOrder())));
  await close();
  const reasons = (await results).map((result) => (result.status === 'rejected' ? result.reason : null));
  const refusals = reasons.filter((reason) => reason instanceof Refusal);
  t.is(refusals.length, 5);
  t.is(refusals[0]!.code, 'RATE_LIMIT_EXCEEDED');
  t.true(refusals[0]!.retryAfterMs! > 0);
});

test('close ends the threads, rejects waiting orders, and accepts no more', async (t) => {
  const { compose, close, threads, errors } = startComposers(t);
  await compose(createOrder());
  const pending = Promise.allSettled(Array.from({ length: 100 }, () => compose(createOrder())));
  await close();
  t.true((await pending).every(({ status }) => status === 'rejected'));
  t.is(threads[0]!.threadId, -1);
  await t.throwsAsync(compose(createOrder()));
  t.is(threads.length, 1);
  t.deepEqual(errors, []);
});
