/** Who runs and who waits when one organization calls very often. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import test from 'ava';
import Koa from 'koa';
import { type AdmitCaller, withSlot } from '#front/http/server-busy.ts';
import { until } from '#lab/until.ts';
import { type Refusal, statusOf } from '#platform/values/refusal.ts';

test('an organization has half of the calls in flight, and eight of them run; sends do not wait', async (t) => {
  const gate = Promise.withResolvers<void>();
  const running: string[] = [];
  const app = new Koa();
  app.use(async (context, next) => {
    try {
      await next();
    } catch (error) {
      context.status = statusOf[(error as Refusal).code];
    }
  });
  app.use(withSlot(60));
  app.use(async (context) => {
    const [, org, kind] = context.path.split('/') as [string, string, string];
    const admit = context.state.admitCaller!;
    await admit(org, kind === 'send');
    running.push(`${org} ${kind}`);
    await gate.promise;
    context.status = 200;
  });
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const call = (path: string, signal?: AbortSignal) =>
    fetch(url + path, { headers: { connection: 'close' }, ...(signal && { signal }) }).then(
      ({ status }) => status,
      () => 0,
    );
  const gone = new AbortController();
  const first = Array.from({ length: 8 }, () => call('/a/read'));
  await until(() => running.length === 8);
  const left = Array.from({ length: 2 }, () => call('/a/left', gone.signal));
  const waiting = Array.from({ length: 15 }, () => call('/a/read'));
  const send = call('/a/send');
  const other = call('/b/read');
  await until(() => running.includes('a send') && running.includes('b read'));
  t.is(running.length, 10);
  // With these the organization has 30.
  const last = Array.from({ length: 4 }, () => call('/a/read'));
  await until(
    async () => (await new Promise((done) => server.getConnections((_, count) => done(count)))) === 31,
  );
  t.is(await call('/a/read'), 429);
  gone.abort();
  await Promise.all(left);
  await until(
    async () => (await new Promise((done) => server.getConnections((_, count) => done(count)))) === 29,
  );
  gate.resolve();
  t.deepEqual(new Set(await Promise.all([...first, ...waiting, ...last, send, other])), new Set([200]));
  t.false(running.includes('a left'), 'nothing is done for a client that has gone');
  t.is(await call('/a/read'), 200);
});

test('a turn lasts until the client has the answer, or has gone', async (t) => {
  let begun = 0;
  const app = new Koa();
  // It would print that a connection was reset.
  app.silent = true;
  app.use(withSlot(100));
  app.use(async (context) => {
    await (context.state.admitCaller as AdmitCaller)('a', false);
    begun += 1;
    context.body = 'x'.repeat(20_000_000);
  });
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const open = () => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
    socket.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return socket;
  };
  const eight = Array.from({ length: 8 }, open);
  await until(() => begun === 8);
  const ninth = open();
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.is(begun, 8);
  eight[0]!.resume();
  await until(() => begun === 9);
  const tenth = open();
  eight[1]!.destroy();
  await until(() => begun === 10);
  for (const socket of [...eight, ninth, tenth]) socket.destroy();
});
