/** Requests of one network wait for each other; those of another wait for a few of them only. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { listen } from '#front/http/http-server.ts';
import { RequestTurns } from '#front/http/request-turns.ts';
import { until } from '#lab/until.ts';

const maxPerTurn = 16;
const maxInWork = 250;

const networkNamed = (name: string, isProxy = false) => ({ name, isProxy });
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test('a turn begins a few requests, of each network in turn, and of one at a time before those that are pipelined', async (t) => {
  const turns = new RequestTurns();
  const begun: string[] = [];
  const enter = (name: string, isPipelined = false) =>
    turns.enter(networkNamed(name), isPipelined, (leave) => {
      begun.push(isPipelined ? `${name}+` : name);
      leave();
    });
  for (let n = 0; n < 1000; n++) enter('a', true);
  t.deepEqual(begun, [], 'a pipelined request never begins in the turn of the one in front of it');
  for (let n = 0; n < 3; n++) enter('b');
  enter('a');
  await nextTurn();
  t.deepEqual(begun.slice(0, 6), ['a+', 'b', 'a', 'a+', 'b', 'a+']);
  t.is(begun.length, maxPerTurn);
  enter('c');
  await nextTurn();
  t.true(begun.indexOf('c') <= maxPerTurn + 1);
  t.is(begun.length, 2 * maxPerTurn);
  await until(() => begun.length === 1005);
});

test('a network has a bounded number of requests in work, and others do not wait for it', async (t) => {
  const turns = new RequestTurns();
  const leave: (() => void)[] = [];
  const others: string[] = [];
  for (let n = 0; n < maxInWork + 2; n++)
    turns.enter(networkNamed('a'), false, (done) => void leave.push(done));
  await until(() => leave.length === maxInWork);
  for (let n = 0; n < 2 * maxInWork; n++)
    turns.enter(networkNamed('proxy', true), n % 2 === 0, () => void others.push('proxy'));
  turns.enter(networkNamed('b'), false, () => void others.push('b'));
  await until(() => others.length === 2 * maxInWork + 1, { what: 'requests of others' });
  t.is(leave.length, maxInWork);
  leave[0]!();
  await until(() => leave.length === maxInWork + 1);
});

async function startServer(t: ExecutionContext, handler: Parameters<typeof listen>[0]) {
  const address = { httpHost: '127.0.0.1', httpPort: 0, httpProxies: [], httpKeepAlive: 5_000 };
  const server = await listen(handler, address);
  const sockets: Socket[] = [];
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    return server.close();
  });
  return (text: string, localAddress = '127.0.0.1') => {
    const socket = connect({ port: server.port, host: '127.0.0.1', localAddress });
    sockets.push(socket.on('error', () => {}));
    return socket.write(text) && socket.resume();
  };
}

test('100 connections with 16 requests each: a few are handled in a turn, and all are answered', async (t) => {
  let inTurn = 0;
  let most = 0;
  let handled = 0;
  const open = await startServer(t, async (_, response) => {
    inTurn += 1;
    most = Math.max(most, inTurn);
    handled += 1;
    response.end('x');
  });
  let isOver = false;
  const countTurns = () => {
    inTurn = 0;
    if (!isOver) setImmediate(countTurns);
  };
  countTurns();
  for (let n = 0; n < 100; n++) open('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(16), '127.0.0.7');
  await until(() => handled === 1600, { what: () => `the answers; ${handled} requests were handled` });
  isOver = true;
  // Two turns of the server can lie between two of the count.
  t.true(most <= 2 * maxPerTurn, `${most} in a turn`);
});

test('behind a proxy, the network is that of the client that the proxy names', async (t) => {
  const begun: string[] = [];
  const open = await startServer(t, async ({ url }, response) => {
    begun.push(url!);
    await once(response, 'close');
  });
  const ask = (path: string, client: string) =>
    open(`GET ${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${client}\r\n\r\n`);
  for (let n = 0; n < maxInWork + 5; n++) ask('/one', `2001:db8::${n.toString(16)}`);
  await until(() => begun.length === maxInWork);
  ask('/other', '2001:db8:0:1::1');
  await until(() => begun.includes('/other'));
  t.is(begun.length, maxInWork + 1);
});
