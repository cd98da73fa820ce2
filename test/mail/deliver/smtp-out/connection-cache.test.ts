/** The sockets of a destination: how many there are, who gets them, when they end. Real ones, to the fake MX. */
import test, { type ExecutionContext } from 'ava';
import { type MxOptions, startMx } from '#lab/mx/mx.ts';
import { said, startDeliverer } from '#lab/scenes/deliverer.ts';
import { until } from '#lab/until.ts';

async function start(t: ExecutionContext, options: MxOptions = {}) {
  const mx = await startMx({ host: '127.0.0.2', tls: false, ...options });
  t.teardown(mx.close);
  return mx;
}

const name = 'mx1.invalid';

test('a session is idle after a mail, and is taken by the next', async (t) => {
  const mx = await start(t);
  const { deliver, pool } = startDeliverer(t, { port: mx.port });
  await deliver();
  t.deepEqual(pool.stats(name), { open: 1, idle: 1 });
  const next = deliver();
  await until(() => pool.stats(name).idle === 0, { what: 'the session to be taken' });
  await next;
  t.is(mx.sessions.length, 1);
});

test('an idle session ends after its time', async (t) => {
  const mx = await start(t);
  const { deliver, pool } = startDeliverer(t, { port: mx.port, shape: { idleMs: 30 } });
  await deliver();
  await until(() => pool.stats(name).open === 0, { what: 'the session to lapse' });
  t.is(mx.sessions[0]!.commands.at(-1), 'QUIT');
});

test('a session carries so many mails and no more', async (t) => {
  const mx = await start(t);
  const shape = { mailsPerConnection: 3, connections: 1 };
  const { deliver, max } = startDeliverer(t, { port: mx.port, shape });
  for (let n = 0; n < 7; n++) await deliver();
  const mails = mx.sessions.map(({ commands }) => commands.filter((one) => one.startsWith('MAIL')).length);
  t.deepEqual(mails, [3, 3, 1]);
  t.is(max(), 1, 'the old one is gone before the new one comes');
});

test('a session that ends while it is idle is not used again', async (t) => {
  const mx = await start(t);
  const { deliver, pool, sockets } = startDeliverer(t, { port: mx.port });
  await deliver();
  mx.script = { quit: () => 'hang' };
  await mx.close();
  await until(() => pool.stats(name).open === 0, { what: 'the session to be forgotten' });
  t.is(sockets.size, 0);
});

test('an idle session to which the host says something is ended', async (t) => {
  const mx = await start(t, {
    script: { dot: () => ({ raw: '250 2.0.0 taken\r\n421 4.4.2 good bye\r\n' }) },
  });
  const { deliver, pool } = startDeliverer(t, { port: mx.port });
  t.is((await deliver()).verdict.outcome, 'delivered');
  await until(() => pool.stats(name).open === 0, { what: 'the session to end' });
});

test('at the limit of connections an idle session of another host is ended first, and its end is awaited', async (t) => {
  const mx = await start(t);
  const second = await startMx({ host: '127.0.0.3', port: mx.port, tls: false });
  t.teardown(second.close);
  const hosts = [{ addresses: ['127.0.0.2'] }];
  const { deliver, pool, max } = startDeliverer(t, { port: mx.port, hosts, shape: { connections: 1 } });
  await deliver();
  hosts[0]!.addresses = ['127.0.0.3'];
  await deliver();
  t.is(second.messages.length, 1);
  t.deepEqual(pool.stats(name), { open: 1, idle: 1 });
  t.is(max(), 1);
  t.is(mx.sessions[0]!.commands.at(-1), 'QUIT');
});

test('a host that does not answer QUIT holds its socket for a second at most', async (t) => {
  const mx = await start(t, { script: { quit: () => 'hang' } });
  const { deliver, pool, sockets } = startDeliverer(t, { port: mx.port });
  await deliver();
  await pool.close();
  t.is(sockets.size, 0);
});

test('many mails at once share the connections that there are', async (t) => {
  const mx = await start(t);
  const { deliver, pool, sockets, max } = startDeliverer(t, { port: mx.port, shape: { connections: 3 } });
  // More than the runner would launch: the pool holds on its own.
  const attempts = await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      deliver({ recipient: `${n % 3 ? 'ann' : 'unknown'}@there.invalid` }),
    ),
  );
  t.is(attempts.filter(({ verdict }) => verdict.outcome === 'delivered').length, 26);
  t.is(max(), 3);
  t.is(mx.sessions.length, 3);
  await pool.close();
  await until(() => sockets.size === 0, { what: 'no socket to be left' });
  t.deepEqual(pool.stats(name), { open: 0, idle: 0 });
});

test('after a refused RSET the session ends, and the outcome of the mail stays', async (t) => {
  const mx = await start(t, { script: { rset: () => '500 what' } });
  const { deliver, pool } = startDeliverer(t, { port: mx.port });
  const attempt = await deliver({ recipient: 'unknown@there.invalid' });
  t.is(attempt.verdict.outcome, 'bounced');
  await until(() => pool.stats(name).open === 0, { what: 'the session to end' });
});

test('connections that cannot be opened leave nothing behind', async (t) => {
  // Not the port of a closed server, which another test's server may get.
  const { deliver, pool, forgotten } = startDeliverer(t, { port: 1, shape: { connections: 1 } });
  const attempts = await Promise.all([deliver(), deliver(), deliver()]);
  for (const attempt of attempts) t.is(attempt.verdict.category, 'network', said(attempt));
  t.deepEqual(pool.stats(name), { open: 0, idle: 0 });
  t.is(forgotten.length, 3);
});

test('an attempt that is stopped while it waits for a connection is interrupted, and leaves nothing', async (t) => {
  const mx = await start(t, { script: { greeting: () => 'hang' } });
  const { deliver, pool, stop, sockets } = startDeliverer(t, { port: mx.port, shape: { connections: 1 } });
  const attempts = [deliver(), deliver()];
  await until(() => mx.sessions.length === 1, { what: 'the first to be connected' });
  stop.abort(new Error('stopped'));
  for (const attempt of await Promise.all(attempts)) {
    t.like(attempt.verdict, { category: 'interrupted', possibleDuplicate: false });
  }
  await until(() => sockets.size === 0, { what: 'no socket to be left' });
  t.deepEqual(pool.stats(name), { open: 0, idle: 0 });
});

test('after a failed handshake the attempt without TLS has no second socket beside the first', async (t) => {
  const mx = await start(t, { tls: 'broken' });
  const { deliver, max } = startDeliverer(t, { port: mx.port, shape: { connections: 1 } });
  t.is((await deliver()).verdict.outcome, 'delivered');
  t.is(mx.sessions.length, 2);
  t.is(max(), 1);
});

test('a mail whose idle connection has died goes over a new one, also at the connection limit', async (t) => {
  const mx = await start(t);
  const { deliver, max } = startDeliverer(t, { port: mx.port, shape: { connections: 1 } });
  await deliver();
  // As where a firewall has forgotten the connection: it is told when it speaks.
  mx.script = { mail: ({ session }) => (session.id === 1 ? 'reset' : undefined) };
  const attempt = await deliver();
  t.is(attempt.verdict.outcome, 'delivered');
  t.is(mx.sessions.length, 2);
  t.is(max(), 1);
});

for (const phase of [
  'greeting',
  'ehlo',
  'mail',
  'rcpt',
  'data',
  'receiving',
  'dot',
  'rset',
  'quit',
] as const) {
  test(`under TLS, a reset at ${phase} leaves nothing behind`, async (t) => {
    const mx = await start(t, { tls: true });
    const { deliver, pool, sockets } = startDeliverer(t, { port: mx.port });
    let isArmed = false;
    mx.script = {
      [phase]: ({ session }: { session: { tls: boolean } }) => (session.tls || isArmed ? 'reset' : undefined),
    };
    isArmed = phase === 'greeting';
    const attempt = await deliver({
      recipient: phase === 'rset' ? 'unknown@there.invalid' : 'ann@there.invalid',
    });
    t.is(attempt.verdict.possibleDuplicate, phase === 'receiving' || phase === 'dot');
    await pool.close();
    await until(() => sockets.size === 0, { what: 'no socket to be left' });
    t.deepEqual(pool.stats(name), { open: 0, idle: 0 });
  });
}

test('an attempt that is stopped in the middle is interrupted, and says whether the mail may have been taken', async (t) => {
  const mx = await start(t);
  const { deliver, stop, sockets } = startDeliverer(t, { port: mx.port });
  await deliver();
  mx.script = { dot: () => 'hang' };
  const attempt = deliver();
  await until(() => mx.sessions[0]!.transcript.at(-1) === 'S: (hang)', { what: 'the message to be out' });
  stop.abort(new Error('stopped'));
  t.like((await attempt).verdict, { category: 'interrupted', possibleDuplicate: true });
  await until(() => sockets.size === 0, { what: 'no socket to be left' });
  t.is((await deliver()).verdict.category, 'interrupted', 'nor is anything begun after it');
  t.is(mx.sessions.length, 1);
});
