/**
 * Several nodes share a destination's limits: together they never have more connections there, nor begin more in a
 * minute, than one node would; what one learns holds for all.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Running } from '../../src/server/start.ts';
import { temporaryDirectory } from '../lab/evidence.ts';
import type { Mx, MxOptions } from '../lab/mx/mx.ts';
import { settleAll, sharedSecret, startNode, tickAll } from '../lab/scenes/nodes.ts';
import { startWorld, type World } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

interface Scene {
  world: World;
  mx: Mx;
  /** Beside the world's own. */
  others: Running[];
  /** Through node `n`, of however many there are. */
  send(n: number): Promise<void>;
}

async function startNodes(
  t: ExecutionContext,
  count: number,
  rule: { connections?: number; perMinute?: number },
  exchanger: MxOptions = {},
): Promise<Scene> {
  const directory = await temporaryDirectory(t);
  const POSTERN_SHAPING_FILE = join(directory, 'shaping.jsonc');
  await writeFile(POSTERN_SHAPING_FILE, JSON.stringify({ rules: [{ domain: 'there.invalid', ...rule }] }));
  const world = await startWorld(t, {
    database: 'postgres',
    settings: { ...sharedSecret, POSTERN_SHAPING_FILE },
    exchangers: [exchanger],
  });
  const others: Running[] = [];
  for (let n = 1; n < count; n++) others.push(await startNode(t, world));
  if (count > 1) await settleAll(world, count);
  let sent = 0;
  return {
    ...{ world, others, mx: world.mx[0]! },
    async send(n) {
      const urls = [world.url(), ...others.map(({ url }) => url)];
      sent += 1;
      const response = await fetch(`${urls[n % urls.length]}/api/public/email/send`, {
        method: 'POST',
        headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          from: 'app@sender.invalid',
          to: `n${sent}@there.invalid`,
          subject: `${sent}`,
          text: 'Hello',
        }),
      });
      t.is(response.status, 200);
      await response.arrayBuffer();
    },
  };
}

const sendMany = (scene: Scene, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => scene.send(n)));

/** The clock goes on until all has come, no faster than the nodes hear each other. */
const allReceived = ({ world, mx, others }: Scene, count: number) =>
  until(
    async () => {
      await tickAll(world, others.length + 1);
      return mx.messages.length >= count;
    },
    { timeout: 30_000, what: () => `${count} messages; ${mx.messages.length} have come` },
  );

/** A server that answers nobody's DATA before it is told to. */
function gated() {
  const gate = Promise.withResolvers<undefined>();
  return { open: () => gate.resolve(undefined), exchanger: { script: { data: () => gate.promise } } };
}

test('three nodes have no more connections together than a destination takes, and use them all', async (t) => {
  const { open, exchanger } = gated();
  t.teardown(open);
  const scene = await startNodes(t, 3, { connections: 4 }, exchanger);
  await sendMany(scene, 30);
  await until(
    async () => {
      await scene.world.clock.advance('1s');
      return scene.mx.connections === 4;
    },
    { what: () => `four connections, there are ${scene.mx.connections}` },
  );
  for (let n = 0; n < 3; n++) await tickAll(scene.world, 3);
  t.is(scene.mx.maxConnections, 4);
  open();
  await allReceived(scene, 30);
  t.is(scene.mx.maxConnections, 4);
  t.is(new Set(scene.mx.messages.map(({ to }) => to[0])).size, 30);
});

test('a node that has no share leaves its mail to the others, at once', async (t) => {
  const scene = await startNodes(t, 3, { connections: 1 });
  // The clock stands still: nobody looks of its own accord.
  await sendMany(scene, 9);
  await scene.mx.received(9);
  t.is(scene.mx.maxConnections, 1);
});

test('who joins waits until the others have made room', async (t) => {
  const { open, exchanger } = gated();
  t.teardown(open);
  const scene = await startNodes(t, 1, { connections: 4 }, exchanger);
  const { world, mx } = scene;
  await sendMany(scene, 4);
  await until(() => mx.connections === 4, { what: 'all connections of the first' });
  scene.others.push(await startNode(t, world));
  for (let n = 0; n < 12; n++) {
    await scene.send(1);
    await tickAll(world, 2);
  }
  t.is(mx.maxConnections, 4, 'the first has not given any up');
  open();
  await allReceived(scene, 16);
  t.is(mx.maxConnections, 4);
});

test('the share of a node that is gone is free when it has not been heard for ten seconds', async (t) => {
  const { open, exchanger } = gated();
  t.teardown(open);
  const scene = await startNodes(t, 1, { connections: 2 }, exchanger);
  const { world, mx } = scene;
  // A node that was killed: it has been counted, and says nothing more.
  await world.db('nodes').insert({ node: 'gone', members: '', at: world.clock.now() });
  await tickAll(world, 1);
  await sendMany(scene, 4);
  for (let n = 0; n < 7; n++) await tickAll(world, 1);
  t.is(mx.maxConnections, 1);
  await until(
    async () => {
      await world.clock.advance('1s');
      return mx.connections === 2;
    },
    { what: 'the connection that it had' },
  );
  t.pass();
});

test('a node that stops gives its share up at once', async (t) => {
  const scene = await startNodes(t, 2, { connections: 1 });
  await scene.others.pop()!.stop();
  t.is((await scene.world.db('nodes')).length, 1);
  for (let n = 0; n < 3; n++) await tickAll(scene.world, 1);
  await sendMany(scene, 3);
  await scene.mx.received(3);
  t.is(scene.mx.maxConnections, 1);
});

test('three nodes begin no more in a minute than the destination’s rate', async (t) => {
  const scene = await startNodes(t, 3, { perMinute: 6 });
  const { world, mx } = scene;
  await sendMany(scene, 24);
  const counts: number[] = [];
  const quiet = async () => (await world.db('deliveries').where({ status: 'sending' })).length <= 3;
  for (let n = 0; n < 100; n++) {
    await tickAll(world, 3);
    await until(quiet, { what: 'what was begun to end' });
    counts.push(mx.messages.length);
  }
  // What is begun at one second may be seen at the next: a little less than a minute.
  for (const [at, count] of counts.entries()) {
    const before = counts[at - 57] ?? 0;
    t.true(count - before <= 6, `${count - before} in the minute before second ${at}`);
  }
  t.true(counts.at(-1)! >= 6, `${counts.at(-1)} in all`);
});

test('asked by the other side to slow down, all nodes together do', async (t) => {
  let max = 0;
  const scene = await startNodes(
    t,
    3,
    { connections: 12 },
    {
      script: {
        greeting: () => (scene.mx.connections > 2 ? '421 4.7.0 too many connections' : undefined),
        data: () => {
          max = Math.max(max, scene.mx.connections);
          return undefined;
        },
      },
    },
  );
  const { world } = scene;
  await sendMany(scene, 30);
  await allReceived(scene, 30);
  for (let n = 0; n < 3; n++) await tickAll(world, 3);
  const states: string[] = await world.db('destinations').pluck('state');
  const limits = states.map((state) => JSON.parse(state).told.limit);
  t.true(limits.length > 0);
  t.is(new Set(limits).size, 1, `all have heard of it: ${limits}`);
  t.true(limits[0]! <= 3, `${limits[0]} at once`);
});
