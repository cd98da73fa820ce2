/**
 * The race for a host's addresses, on real sockets. IPv6 is the wrapped form ::ffff:127.0.0.x: to the program and to
 * the kernel's socket it is IPv6, and it works on every machine.
 */
import { execFile } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { manualClock } from '#lab/clock.ts';
import { type Mx, startMx, startMxs } from '#lab/mx/mx.ts';
import { startSilent } from '#lab/mx/silent.ts';
import { until } from '#lab/until.ts';
import { type ConnectParts, createConnect, type OpenedSocket } from '#mail/deliver/route/connect.ts';
import { createSources, type Source, type Wanted } from '#mail/deliver/route/source-addresses.ts';
import { race } from '#mail/deliver/route/staggered-race.ts';

const v6 = (address: string) => `::ffff:${address}`;

const never = new AbortController().signal;
const anySource: Wanted = { pool: 'default', address: null };

async function start(t: ExecutionContext, hosts: string[]) {
  const mxs = await startMxs(hosts);
  t.teardown(() => Promise.all(mxs.map((mx) => mx.close())));
  return { mxs, port: mxs[0]!.port };
}

/** `connect` for a test: the first in the list is the first tried of its family, and what it opens ends with the test. */
function connector(t: ExecutionContext, own: Partial<ConnectParts> & { port: number }) {
  const clock = manualClock();
  const troubles: string[] = [];
  const connect = createConnect({
    timeoutMs: 3_600_000,
    allowPrivate: true,
    sources: [],
    hostname: 'postern.invalid',
    clock,
    // With these dice shuffling changes nothing.
    random: () => 0.999,
    onError: (what) => troubles.push(what),
    ...own,
  });
  const to = async (addresses: string[], stopped = never, wanted = anySource): Promise<OpenedSocket> => {
    const opened = await connect({ name: 'mx1.invalid', addresses }, wanted, stopped);
    t.teardown(() => opened.socket.destroy());
    t.false(opened.socket.destroyed);
    return opened;
  };
  return { to, clock, troubles };
}

test.serial('no socket and no timer is left of the attempts to connect, however they end', async (t) => {
  const { port } = await start(t, ['127.0.7.2']);
  const silent = await startSilent(['127.0.7.3'], port);
  t.teardown(silent.close);
  const open = () =>
    process
      .getActiveResourcesInfo()
      .filter((kind) => /^(TCPSocketWrap|TCPConnectWrap|Timeout)$/.test(kind))
      .sort();
  const before = open();
  const cases: [string, string[], number, ((stop: AbortController) => void)?][] = [
    ['won', ['127.0.7.3', '127.0.7.2'], 30_000],
    ['refused', ['127.0.7.4', '127.0.7.5'], 30_000],
    ['overdue', ['127.0.7.3'], 50],
    ['stopped', ['127.0.7.3', v6('127.0.7.3')], 30_000, (stop) => setTimeout(() => stop.abort(), 300)],
    ['stopped before', ['127.0.7.2'], 30_000, (stop) => stop.abort()],
  ];
  for (const [name, addresses, timeoutMs, act] of cases) {
    const stop = new AbortController();
    const connect = connector(t, { port, timeoutMs });
    act?.(stop);
    const opened = await connect.to(addresses, stop.signal).catch((error: Error) => error);
    t.is(opened instanceof Error, name !== 'won', name);
    t.is(getEventListeners(stop.signal, 'abort').length, 0, name);
    if (!(opened instanceof Error)) {
      t.is(opened.socket.listenerCount('connect'), 0);
      t.is(opened.socket.listenerCount('error'), 1, 'so that no late error brings the process down');
      opened.socket.destroy();
    }
    const same = () => JSON.stringify(open()) === JSON.stringify(before);
    await until(same, { what: () => `${name}: ${open()} to be ${before}` });
  }
});

test('an IPv6 that never answers costs a head start, and only the first time', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2']);
  const silent = await startSilent(['127.0.7.3'], port);
  const { to, clock } = connector(t, { port });
  t.is((await to([v6('127.0.7.3'), '127.0.7.2'])).address, '127.0.7.2');
  await silent.close();
  // Now it would answer, and win if it were first.
  mxs.push(await startMx({ host: '127.0.7.3', port }));
  t.is((await to([v6('127.0.7.3'), '127.0.7.2'])).address, '127.0.7.2');
  await clock.advance('10m');
  t.is((await to([v6('127.0.7.3'), '127.0.7.2'])).address, v6('127.0.7.3'));
});

test('where both answer, IPv6 is taken, and the other is not called', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2', '127.0.7.3']);
  const { address, localName } = await connector(t, { port }).to(['127.0.7.2', v6('127.0.7.3')]);
  t.is(address, v6('127.0.7.3'));
  t.is(localName, 'postern.invalid');
  t.is(mxs[0]!.sessions.length, 0);
});

test('after a refusal the next address is called at once', async (t) => {
  const { port } = await start(t, ['127.0.7.2']);
  const dead = Array.from({ length: 40 }, (_, n) => `127.0.7.${n + 11}`);
  t.is((await connector(t, { port }).to([...dead, '127.0.7.2'])).address, '127.0.7.2');
  const refused = { headStart: true, run: () => Promise.reject(new Error('refused')) };
  const runners = [refused, refused, { headStart: true, run: async () => 'answered' }];
  const rules = { headStartMs: 3_600_000, stopped: never, discard: () => {} };
  t.is(await race<string>(runners, rules), 'answered');
});

test('an address that failed comes last for ten minutes', async (t) => {
  const { port } = await start(t, ['127.0.7.2']);
  const { to, clock } = connector(t, { port });
  await to(['127.0.7.3', '127.0.7.2']);
  const back = await startMx({ host: '127.0.7.3', port });
  t.teardown(() => back.close());
  await clock.advance('9m');
  t.is((await to(['127.0.7.3', '127.0.7.2'])).address, '127.0.7.2');
  await clock.advance('1m');
  t.is((await to(['127.0.7.3', '127.0.7.2'])).address, '127.0.7.3');
});

test('addresses that all failed are all tried again, after any other', async (t) => {
  const { port } = await start(t, ['127.0.7.9']);
  const { to } = connector(t, { port });
  await t.throwsAsync(to(['127.0.7.3', '127.0.7.2']));
  const back = await startMx({ host: '127.0.7.2', port });
  t.teardown(() => back.close());
  t.is((await to(['127.0.7.2', '127.0.7.9'])).address, '127.0.7.9');
  t.is((await to(['127.0.7.3', '127.0.7.2'])).address, '127.0.7.2');
});

test('an address without a head start is called together with the next', async (t) => {
  const started: string[] = [];
  const stop = new AbortController();
  const runner = (name: string, headStart: boolean) => ({
    headStart,
    run: () => {
      started.push(name);
      return new Promise<string>(() => {});
    },
  });
  const racing = race(
    [runner('dead', false), runner('dead too', false), runner('alive', true), runner('last', true)],
    {
      headStartMs: 60_000,
      stopped: stop.signal,
      discard: () => {},
    },
  );
  t.deepEqual(started, ['dead', 'dead too', 'alive']);
  stop.abort();
  await t.throwsAsync(racing);
});

test('the addresses of a family are called in random order', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2', '127.0.7.3', '127.0.7.4']);
  const { to } = connector(t, { port, random: Math.random });
  for (let n = 0; n < 60; n++) (await to(mxs.map(({ host }) => host))).socket.destroy();
  // Of 60 each has 20; that one has fewer than 5 happens once in a hundred thousand runs.
  for (const { sessions } of mxs) t.true(sessions.length >= 5, String(sessions.length));
});

test('when nobody answers, one sentence names each address and its trouble', async (t) => {
  const { port } = await start(t, ['127.0.7.9']);
  const silent = await startSilent(['127.0.7.3'], port);
  t.teardown(silent.close);
  const { to } = connector(t, { port, timeoutMs: 3000 });
  const error = await t.throwsAsync(to(['127.0.7.3', '127.0.7.2', v6('127.0.7.4')]));
  t.is(
    error?.message,
    'mx1.invalid does not answer: ::ffff:127.0.7.4 refused the connection; ' +
      '127.0.7.3 did not answer within 3 s; 127.0.7.2 refused the connection',
  );
});

test('private and special addresses are refused at the last moment, wrapped ones too', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2']);
  const { to } = connector(t, { port, allowPrivate: false });
  const error = await t.throwsAsync(to(['127.0.7.2', v6('127.0.7.2'), '10.0.0.1', '198.51.100.1', '::1']));
  t.is(error?.message.match(/is a private or special address/g)?.length, 5);
  t.is(mxs[0]!.sessions.length, 0);
});

test('a stop ends the attempts to connect, with its reason', async (t) => {
  const { port } = await start(t, ['127.0.7.2']);
  const silent = await startSilent(['127.0.7.3'], port);
  t.teardown(silent.close);
  const stop = new AbortController();
  const connecting = connector(t, { port }).to(['127.0.7.3'], stop.signal);
  stop.abort(new Error('enough'));
  await t.throwsAsync(connecting, { message: 'enough' });
});

test('a connection that is made after another has won is closed', async (t) => {
  const stop = new AbortController();
  const discarded: string[] = [];
  let arrive = (_value: string) => {};
  const racing = race(
    [{ headStart: true, run: () => new Promise<string>((resolve) => (arrive = resolve)) }],
    { headStartMs: 1000, stopped: stop.signal, discard: (value) => discarded.push(value) },
  );
  stop.abort();
  arrive('late');
  await t.throwsAsync(racing, { name: 'AbortError' });
  await until(() => discarded.length > 0);
  t.deepEqual(discarded, ['late']);
});

const named = (address: string, name: string | null = null, pool = 'default'): Source => ({
  address,
  name,
  pool,
});

/** What each of `times` connections to the MX looks like from there. */
async function callers(mx: Mx, times: number, call: () => Promise<OpenedSocket>) {
  const seen: { from: string; localName: string }[] = [];
  for (let n = 0; n < times; n++) {
    const known = mx.sessions.length;
    const { localName } = await call();
    await until(() => mx.sessions.length > known);
    seen.push({ from: mx.sessions.at(-1)!.from, localName });
  }
  return seen;
}

test('connections come from the sources of their family in turn, under their names', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2']);
  const sources = [
    named('127.0.7.21', 'out1.invalid'),
    named(v6('127.0.7.22'), 'out2.invalid'),
    named('127.0.7.23'),
  ];
  const { to } = connector(t, { port, sources });
  t.deepEqual(await callers(mxs[0]!, 3, () => to(['127.0.7.2'])), [
    { from: '127.0.7.21', localName: 'out1.invalid' },
    { from: '127.0.7.23', localName: 'postern.invalid' },
    { from: '127.0.7.21', localName: 'out1.invalid' },
  ]);
  t.deepEqual(await callers(mxs[0]!, 2, () => to([v6('127.0.7.2')])), [
    { from: '127.0.7.22', localName: 'out2.invalid' },
    { from: '127.0.7.22', localName: 'out2.invalid' },
  ]);
});

test('a family without a source is not tried', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2']);
  const { to } = connector(t, { port, sources: [named('127.0.7.21')] });
  t.is((await to([v6('127.0.7.2'), '127.0.7.2'])).address, '127.0.7.2');
  const error = await t.throwsAsync(to([v6('127.0.7.2')]));
  t.is(
    error?.message,
    'mx1.invalid was not called: ::ffff:127.0.7.2 is of a family that POSTERN_MTA_SOURCES has no address for',
  );
  t.is(mxs[0]!.sessions.length, 1);
});

test('a source that cannot be bound is told of once, and the others take its turns', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2']);
  const sources = [named('203.0.113.9', 'gone.invalid'), named('127.0.7.21', 'out1.invalid')];
  const { to, troubles, clock } = connector(t, { port, sources });
  const seen = await callers(mxs[0]!, 3, () => to(['127.0.7.2']));
  t.deepEqual(new Set(seen.map(({ from }) => from)), new Set(['127.0.7.21']));
  await clock.advance('10m');
  await to(['127.0.7.2']);
  await to(['127.0.7.2']);
  t.deepEqual(troubles, ['POSTERN_MTA_SOURCES: mail cannot be sent from 203.0.113.9']);
});

test('where no source can be bound, the system chooses', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2']);
  const { to, troubles } = connector(t, { port, sources: [named('203.0.113.9'), named('203.0.113.10')] });
  const [seen] = await callers(mxs[0]!, 1, () => to(['127.0.7.2']));
  t.is(seen!.localName, 'postern.invalid');
  t.regex(seen!.from, /^127\./);
  t.is(troubles.length, 2);
});

test('a source that works again takes its turns again, and its next trouble is news', async (t) => {
  const clock = manualClock();
  const troubles: string[] = [];
  const sources = createSources({
    sources: [named('192.0.2.1'), named('192.0.2.2')],
    hostname: 'postern.invalid',
    clock,
    onError: (what) => troubles.push(what),
  });
  const turn = () => {
    const [origin] = sources.turns('198.51.100.1', anySource);
    return origin!;
  };
  const first = turn();
  sources.unusable(first, new Error('no'));
  t.deepEqual([turn().address, turn().address], ['192.0.2.2', '192.0.2.2']);
  await clock.advance('10m');
  t.is(turn().address, '192.0.2.1');
  sources.worked(first);
  sources.unusable(first, new Error('no'));
  t.is(troubles.length, 2);
});

test('a connection comes from its pool alone, even where no address of that can be bound', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2']);
  const sources = [
    named('127.0.7.21'),
    named('127.0.7.22', 'bulk1.invalid', 'bulk'),
    named('127.0.7.23', 'bulk2.invalid', 'bulk'),
    named('203.0.113.9', null, 'gone'),
  ];
  const { to } = connector(t, { port, sources });
  const from = (pool: string, address: string | null = null) => to(['127.0.7.2'], never, { pool, address });
  const bulk = await callers(mxs[0]!, 3, () => from('bulk'));
  t.deepEqual(
    bulk.map(({ localName }) => localName),
    ['bulk1.invalid', 'bulk2.invalid', 'bulk1.invalid'],
  );
  const again = await callers(mxs[0]!, 2, () => from('bulk', '127.0.7.23'));
  t.deepEqual(new Set(again.map((one) => one.from)), new Set(['127.0.7.23']));
  t.deepEqual(await callers(mxs[0]!, 1, () => from('default')), [
    { from: '127.0.7.21', localName: 'postern.invalid' },
  ]);
  const calls = mxs[0]!.sessions.length;
  for (let n = 0; n < 2; n++) {
    const error = await t.throwsAsync(from('gone'), { name: 'NoSource' });
    t.is(
      error.message,
      'mx1.invalid was not called: 127.0.7.2 cannot be reached: no source address of the pool gone can be used',
    );
  }
  await t.throwsAsync(from('unheard-of'), { name: 'NoSource' });
  t.is(mxs[0]!.sessions.length, calls);
});

test('an address that is wanted again gives way where it cannot be bound', async (t) => {
  const { mxs, port } = await start(t, ['127.0.7.2']);
  const { to } = connector(t, { port, sources: [named('127.0.7.21'), named('203.0.113.9')] });
  const again = { pool: 'default', address: '203.0.113.9' };
  t.is((await callers(mxs[0]!, 1, () => to(['127.0.7.2'], never, again)))[0]!.from, '127.0.7.21');
});

test('where this process has no socket left, the host is not at fault, and no source address is rested', async (t) => {
  const program = `
    import { openSync } from 'node:fs';
    import { createConnect } from ${JSON.stringify(join(import.meta.dirname, '../../../../src/mail/deliver/route/connect.ts'))};

    const told = [];
    const connect = createConnect({
      port: 1, timeoutMs: 1000, allowPrivate: true, hostname: 'postern.invalid',
      sources: [{ address: '127.0.7.9', name: null, pool: 'default' }],
      clock: { now: () => 0 },
      random: () => 0,
      onTrouble: (what) => told.push(what),
    });
    const host = { name: 'mx1.invalid', addresses: ['127.0.7.8'] };
    const call = () => connect(host, { pool: 'default', address: null }, new AbortController().signal);
    // What is loaded late needs files too.
    await call().catch(() => {});
    try {
      for (;;) openSync('/dev/null');
    } catch {
      const { name, message } = await call().catch((error) => error);
      console.log(JSON.stringify([name, message, told]));
    }`;
  const { stdout } = await promisify(execFile)('sh', [
    ...['-c', 'ulimit -n 100; exec "$0" "$@"', process.execPath],
    ...['--input-type=module', '--eval', program],
  ]);
  const [name, message, told] = JSON.parse(stdout);
  t.is(name, 'NoSource');
  t.regex(message, /^mx1\.invalid was not called: 127\.0\.7\.8 cannot be called: .*LimitNOFILE/);
  t.deepEqual(told, []);
});
