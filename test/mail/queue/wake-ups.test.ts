/**
 * Nodes on one PostgreSQL wake each other. The clock stands still here, so that no node looks of its own accord: what
 * happens, happens because it was told.
 */
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const settings = { ...sharedSecret, POSTERN_ROLES: 'http' };

/** The world takes mail, and another node sends it. */
async function startBoth(t: ExecutionContext): Promise<World> {
  const world = await startWorld(t, { database: 'postgres', settings });
  await startNode(t, world, { roles: ['mta'] });
  await until(async () => (await listeners(world)).length === 2, { what: 'both nodes to listen' });
  return world;
}

const listeners = ({ db }: World): Promise<number[]> =>
  db('pg_stat_activity')
    .whereLike('application_name', 'postern bell%')
    .whereRaw('datname = current_database()')
    .pluck('pid');

const isDelivered = ({ status }: { status: string }) => status === 'delivered';

test('another node sends at once the mail that this one has accepted', async (t) => {
  const world = await startBoth(t);
  const { body } = await world.send({ to: 'ann@there.invalid' });
  t.is((await world.when(body.emailId, isDelivered)).recipients[0].attempts, 1);
});

test('many mails accepted together are one notification', async (t) => {
  const world = await startBoth(t);
  const heard: { lanes: [string, string][] }[] = [];
  const listener = new pg.Client({ connectionString: world.config.databaseUrl! });
  await listener.connect();
  t.teardown(() => listener.end());
  listener.on('notification', ({ payload }) => heard.push(JSON.parse(payload!)));
  await listener.query('listen postern');
  const sends = Array.from({ length: 60 }, (_, n) => world.send({ to: `n${n}@there.invalid` }));
  await Promise.all(sends);
  await world.mx[0]!.received(60);
  const withLanes = heard.filter(({ lanes }) => lanes.length > 0);
  t.true(withLanes.length > 0 && withLanes.length < 30, `${withLanes.length} notifications`);
  t.true(withLanes.every(({ lanes }) => lanes.length === 1));
});

test('an event on one node wakes the readers of events on another', async (t) => {
  const world = await startBoth(t);
  const second = await startNode(t, world, { roles: ['http'] });
  const leave = new AbortController();
  t.teardown(() => leave.abort());
  const stream = await fetch(`${second.url}/api/public/events`, {
    headers: { authorization: `Bearer ${world.key}`, accept: 'text/event-stream' },
    signal: leave.signal,
  });
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  let told = '';
  const reading = (async () => {
    while (!told.includes('email.delivered')) told += (await reader.read()).value;
  })();
  await world.send({ to: 'ann@there.invalid' });
  await reading;
  t.true(told.indexOf('email.queued') < told.indexOf('email.delivered'));
});

test('a lost connection for notifications is replaced; until then nodes poll', async (t) => {
  const world = await startBoth(t);
  const before = await listeners(world);
  await world.db.raw('select pg_terminate_backend(pid) from unnest(?::int[]) as pid', [before]);
  const first = await world.send({ to: 'ann@there.invalid' });
  await world.clock.passUntil(async () => isDelivered(await world.get(first.body.emailId)));
  const isNew = (pid: number) => !before.includes(pid);
  await until(async () => (await listeners(world)).filter(isNew).length === 2, { what: 'new connections' });
  // A new connection may not listen yet, so mails are sent until the other node hears of one.
  const arrived = world.mx[0]!.messages.length;
  await until(async () => {
    t.is((await world.send({ to: 'bob@there.invalid' })).status, 200);
    return world.mx[0]!.messages.length > arrived;
  });
});
