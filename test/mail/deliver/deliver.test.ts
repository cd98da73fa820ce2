/** An attempt: hosts and addresses in order, until a word is final. */
import test, { type ExecutionContext } from 'ava';
import { type MxOptions, startMxs } from '#lab/mx/mx.ts';
import { type DelivererOptions, said, startDeliverer } from '#lab/scenes/deliverer.ts';

/** Exchangers at 127.0.0.2 and on, all at one port. */
async function start(t: ExecutionContext, exchangers: MxOptions[], options: Partial<DelivererOptions> = {}) {
  const hosts = exchangers.map((mx, index) => ({ host: `127.0.0.${index + 2}`, tls: false, ...mx }));
  const mx = await startMxs(hosts);
  t.teardown(() => Promise.all(mx.map((one) => one.close())));
  return { mx, deliverer: startDeliverer(t, { port: mx[0]!.port, ...options }) };
}

const later = { script: { rcpt: () => '450 4.2.0 later' } };
const address = (n: number) => `127.0.0.${n + 1}`;

test('the message comes with the delivery, or is read', async (t) => {
  const { mx, deliverer } = await start(t, [{}]);
  await deliverer.deliver();
  await deliverer.deliver({ message: Buffer.from('Subject: at hand\r\n\r\n') });
  t.deepEqual(
    mx[0]!.messages.map(({ raw }) => /^Subject: (.*)\r\n/.exec(raw.toString())![1]),
    ['hello', 'at hand'],
  );
});

test('an attempt names its destination, and what it says of it', async (t) => {
  const { mx, deliverer } = await start(t, [{}]);
  t.like(await deliverer.deliver(), { destination: 'mx1.invalid', signal: 'working' });
  mx[0]!.script = { mail: () => '421 4.7.0 slow down' };
  t.like(await deliverer.deliver(), { destination: 'mx1.invalid', signal: 'throttled' });
});

test('a host that throttles is reported although the next host took the mail', async (t) => {
  const { deliverer } = await start(t, [{ script: { mail: () => '421 4.7.0 slow down' } }, {}], {
    hosts: [{}, {}],
  });
  t.like(await deliverer.deliver(), { signal: 'throttled', verdict: { outcome: 'delivered' } });
});

test('after an answer that is not final, the other addresses of the host are tried, then the next host', async (t) => {
  const { mx, deliverer } = await start(t, [later, later, {}], {
    hosts: [{ addresses: [address(1), address(2)] }, { addresses: [address(3)] }],
  });
  const attempt = await deliverer.deliver();
  t.is(attempt.verdict.outcome, 'delivered');
  t.deepEqual(attempt.mx, { host: 'mx2.invalid', address: address(3), port: mx[0]!.port });
  t.deepEqual(
    mx.map(({ sessions }) => sessions.length),
    [1, 1, 1],
  );
});

test('an attempt has five conversations at most', async (t) => {
  const { mx, deliverer } = await start(t, [later, later, later, later, later, later], {
    hosts: [{ addresses: [1, 2, 3].map(address) }, { addresses: [4, 5, 6].map(address) }],
  });
  const attempt = await deliverer.deliver();
  t.is(attempt.verdict.outcome, 'deferred');
  t.deepEqual(
    mx.map(({ sessions }) => sessions.length),
    [1, 1, 1, 1, 1, 0],
  );
});

test('a final answer ends the attempt', async (t) => {
  const { mx, deliverer } = await start(t, [{}, {}], { hosts: [{}, {}] });
  const attempt = await deliverer.deliver({ recipient: 'unknown@there.invalid' });
  t.is(attempt.verdict.outcome, 'bounced');
  t.is(mx[1]!.sessions.length, 0);
});

test('a host that must not be used is passed over; if no other takes the mail, its reason counts', async (t) => {
  const result = { kind: 'tls-required', detail: 'mx1.invalid is not in the policy' } as const;
  const { mx, deliverer } = await start(t, [{}, {}], { hosts: [{ result }, {}] });
  t.is((await deliverer.deliver()).verdict.outcome, 'delivered');
  t.is(mx[0]!.sessions.length, 0);
  const alone = startDeliverer(t, { port: mx[0]!.port, hosts: [{ result }] });
  t.like((await alone.deliver()).verdict, { category: 'tls', diagnostic: result.detail });
  t.deepEqual(alone.forgotten, [], 'the route is as it should be');
});

test('a session that waits at the second host is used before the first is dialed', async (t) => {
  const { mx, deliverer } = await start(t, [later, {}], { hosts: [{}, {}] });
  await deliverer.deliver();
  await deliverer.pool.close();
  await deliverer.deliver();
  t.is(mx[0]!.sessions.length, 2);
});

test('where no host answers, the route is forgotten', async (t) => {
  const { mx, deliverer } = await start(t, [{}, {}], { hosts: [{}, {}] });
  await Promise.all(mx.map((one) => one.close()));
  const attempt = await deliverer.deliver();
  t.is(attempt.verdict.category, 'network');
  t.deepEqual(deliverer.forgotten, ['there.invalid']);
  t.regex(said(attempt), /mx1\.invalid \[127\.0\.0\.2\]: ECONNREFUSED/);
});

test('where one host answers, the route is kept', async (t) => {
  const { mx, deliverer } = await start(t, [{}, later], { hosts: [{}, {}] });
  await mx[0]!.close();
  t.is((await deliverer.deliver()).verdict.outcome, 'deferred');
  t.deepEqual(deliverer.forgotten, []);
});

test('where one host must not be used and the other does not answer, the route is forgotten', async (t) => {
  const result = { kind: 'tls-required', detail: 'mx1.invalid is not in the policy' } as const;
  const { mx, deliverer } = await start(t, [{}, {}], { hosts: [{ result }, {}] });
  await mx[1]!.close();
  await deliverer.deliver();
  t.deepEqual(deliverer.forgotten, ['there.invalid']);
});

test('an internal error is a deferral that names it', async (t) => {
  const readMessage = () => Promise.reject(new Error('the disk is gone'));
  const { deliverer } = await start(t, [{}], { readMessage });
  const attempt = await deliverer.deliver();
  t.like(attempt.verdict, { outcome: 'deferred', category: 'internal', origin: 'local' });
});
