/** Nodes with some of the roles on one PostgreSQL do together what one with all of them does, and no more each. */
import test, { type ExecutionContext } from 'ava';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { readVersion } from '#platform/base/version.ts';

const frontOnly = (t: ExecutionContext) =>
  startWorld(t, { database: 'postgres', settings: { ...sharedSecret, POSTERN_ROLES: 'http' } });

test('what a node without mta has accepted waits, due, for one that has it', async (t) => {
  const world = await frontOnly(t);
  const { body } = await world.send({ to: 'ann@there.invalid' });
  t.is((await world.get(body.emailId)).status, 'queued');
  await startNode(t, world, { roles: ['mta'] });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(world.mx[0]!.messages.length, 1);
});

test('a node without http has its health, and no API, no dashboard', async (t) => {
  const world = await frontOnly(t);
  const { url, isFresh, setUpUrl } = await startNode(t, world, { roles: ['mta'] });
  t.deepEqual({ isFresh, setUpUrl }, { isFresh: false, setUpUrl: null });
  const statusOf = async (path: string) => (await fetch(url + path)).status;
  t.is(await statusOf('/health/ready'), 200);
  t.is(await statusOf('/metrics'), 200);
  for (const path of ['/dashboard', '/docs', '/api/public/events']) t.is(await statusOf(path), 404, path);
});

test('a node that sends nothing says that it runs, as long as it does, and counts for no share', async (t) => {
  const world = await frontOnly(t);
  const [known] = await world.db('nodes');
  t.like(known, { version: readVersion(), sends: false });
  const began = world.clock.now();
  await world.clock.passUntil(async () => (await world.db('nodes').where('at', '>', began)).length === 1, {
    step: '5s',
    what: 'another word of it',
  });
  const sender = await startNode(t, world, { roles: ['mta'] });
  const bySending = async () => (await world.db('nodes').orderBy('sends')).map(({ sends }) => sends);
  await until(async () => (await bySending()).join() === 'false,true', { what: 'the beat of who sends' });
  await sender.stop();
  await world.stop();
  t.deepEqual(await world.db('nodes'), []);
});
