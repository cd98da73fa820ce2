/** /health/live and /health/ready: what keeps mail from being taken, and what a stop says before it shuts the port. */
import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { createHealth } from '#operate/health.ts';

async function ask(world: World, path: string, init?: RequestInit) {
  const response = await fetch(`${world.url()}${path}`, init);
  return { status: response.status, headers: response.headers, body: await response.text() };
}

/** On a busy machine the database may not answer in time at first. */
function askUntil(world: World, path: string, status: number, init?: RequestInit) {
  return world.clock.passUntil(async () => {
    const answer = await ask(world, path, init);
    return answer.status === status && answer;
  });
}

const ok = { status: 'ok' };

test('a server that runs is live and ready, without a key, and not a word of the public API', async (t) => {
  const world = await startWorld(t);
  for (const path of ['/health/live', '/health/ready', '/health/ready?verbose']) {
    const { headers, body } = await askUntil(world, path, 200);
    t.deepEqual(JSON.parse(body), ok);
    t.is(headers.get('content-type'), 'application/json; charset=utf-8');
    t.is(headers.get('cache-control'), 'no-store');
    t.is(headers.get('x-ratelimit-limit'), null);
  }
  const head = await askUntil(world, '/health/ready', 200, { method: 'HEAD' });
  t.is(head.body, '');
  const post = await ask(world, '/health/live', { method: 'POST', body: 'x' });
  t.is(post.status, 405);
  t.is(post.headers.get('allow'), 'GET, HEAD');
  const other = await ask(world, '/health/other');
  t.is(other.status, 404);
  t.is(JSON.parse(other.body).error, 'NOT_FOUND');
});

test('a server without disk space is live, and not ready', async (t) => {
  const world = await startWorld(t, { overrides: { freeBytes: async () => 1 } });
  const reasons = ["the data directory's disk has too little space"];
  await world.clock.passUntil(async () => {
    const { status, body } = await ask(world, '/health/ready');
    return status === 503 && isDeepStrictEqual(JSON.parse(body).reasons, reasons);
  });
  t.is((await ask(world, '/health/live')).status, 200);
});

test('a database that hangs is seen within a second, and one that answers again at once', async (t) => {
  const world = await startWorld(t, { database: 'sqlite' });
  const trx = await world.db.transaction();
  await trx('organizations').update({ name: 'Tenant' });
  const sending = world.send({ to: 'ann@there.invalid' });
  const said = await world.clock.passUntil(async () => {
    const answer = await ask(world, '/health/ready');
    return answer.status === 503 && answer;
  });
  t.deepEqual(JSON.parse(said.body), {
    status: 'unavailable',
    reasons: ['the database does not answer'],
  });
  t.is((await ask(world, '/health/live')).status, 200);
  await trx.commit();
  t.is((await sending).status, 200);
  await world.clock.passUntil(async () => (await ask(world, '/health/ready')).status === 200);
});

test('however often health is asked for, the database is asked once a second, and never twice at once', async (t) => {
  const clock = manualClock();
  const pings: PromiseWithResolvers<void>[] = [];
  const ping = () => {
    const one = Promise.withResolvers<void>();
    pings.push(one);
    return one.promise;
  };
  const { reasons: faults } = createHealth({ ping, obstacle: () => null, clock });
  const crowd = Array.from({ length: 100 }, faults);
  pings[0]!.resolve();
  for (const one of await Promise.all(crowd)) t.deepEqual(one, []);
  await clock.advance(999);
  t.deepEqual(await faults(), []);
  t.is(pings.length, 1);
  await clock.advance(1);
  t.deepEqual(await faults(), ['the database does not answer'], 'the second hangs');
  await clock.advance(5000);
  t.deepEqual(await faults(), ['the database does not answer']);
  t.is(pings.length, 2);
  pings[1]!.resolve();
  await clock.advance(1000);
  const next = faults();
  await until(() => pings.length === 3);
  pings[2]!.reject(new Error('gone'));
  t.deepEqual(await next, ['the database does not answer']);
});

test('a stop says 503 for POSTERN_STOP_DELAY, in which mail is taken, and then shuts the port', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_STOP_DELAY: '5s' } });
  const stopping = world.stop();
  const { status, headers, body } = await ask(world, '/health/ready');
  t.is(status, 503);
  t.deepEqual(JSON.parse(body).reasons, ['it is stopping']);
  t.is(headers.get('connection'), 'close', 'who asks again is to ask another');
  t.is((await ask(world, '/health/live')).status, 200);
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);
  await world.clock.advance('5s');
  await stopping;
  await t.throwsAsync(ask(world, '/health/live'));
});
