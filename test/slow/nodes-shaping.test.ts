/**
 * Several nodes share a destination's limits: together they never have more connections there than one node would; what one
 * learns holds for all. Their rate and their circuits: test/slow/nodes-rate.test.ts, test/slow/nodes-circuit.test.ts.
 */
import test from 'ava';
import { gated, startLimitedNodes } from '#lab/scenes/limited-nodes.ts';
import { startNode, tickAll } from '#lab/scenes/nodes.ts';
import { until } from '#lab/until.ts';

test('three nodes have no more connections together than a destination takes, and use them all; asked to slow down, all do', async (t) => {
  const { open, exchanger } = gated();
  t.teardown(open);
  let max = 0;
  const busy = {
    script: {
      greeting: () => (mx.busy.connections > 2 ? '421 4.7.0 too many connections' : undefined),
      data: () => {
        max = Math.max(max, mx.busy.connections);
        return undefined;
      },
    },
  };
  const { world, mx, sendMany, allReceived } = await startLimitedNodes(t, 3, {
    single: { rule: { connections: 1 } },
    four: { rule: { connections: 4 }, exchanger },
    busy: { rule: { connections: 12 }, exchanger: busy },
  });

  // The clock stands still: nobody looks of its own accord. A node that has no share leaves its mail to the others.
  await sendMany('single', 9);
  await mx.single.received(9);
  t.is(mx.single.maxConnections, 1);

  await sendMany('four', 30);
  await until(
    async () => {
      await tickAll(world, 3);
      return mx.four.connections === 4;
    },
    { what: () => `four connections, there are ${mx.four.connections}` },
  );
  for (let n = 0; n < 3; n++) await tickAll(world, 3);
  t.is(mx.four.maxConnections, 4);
  open();
  await allReceived('four', 30);
  t.is(mx.four.maxConnections, 4);
  t.is(new Set(mx.four.messages.map(({ to }) => to[0])).size, 30);

  await sendMany('busy', 30);
  await allReceived('busy', 30);
  for (let n = 0; n < 3; n++) await tickAll(world, 3);
  const known: { name: string; state: string }[] = await world.db('destinations').select('name', 'state');
  const states = known.filter(({ name }) => name.includes('busy.invalid'));
  const limits = states.map(({ state }) => JSON.parse(state).told.limit);
  t.true(limits.length > 0, known.map(({ name }) => name).join());
  t.is(new Set(limits).size, 1, `all have heard of it: ${limits}`);
  t.true(limits[0]! <= 3, `${limits[0]} at once`);
});

test('the connections of a node that is gone are free after ten seconds, of one that stops at once; a new node waits for its own', async (t) => {
  const [gone, joined] = [gated(), gated()];
  t.teardown(gone.open);
  t.teardown(joined.open);
  const scene = await startLimitedNodes(t, 1, {
    two: { rule: { connections: 2 }, exchanger: gone.exchanger },
    four: { rule: { connections: 4 }, exchanger: joined.exchanger },
    single: { rule: { connections: 1 } },
  });
  const { world, mx, others, send, sendMany, allReceived } = scene;

  // A node that was killed: it has been counted, and says nothing more.
  await world.db('nodes').insert({ node: 'gone', members: '', at: world.clock.now() });
  await tickAll(world, 1);
  await sendMany('two', 4);
  for (let n = 0; n < 7; n++) await tickAll(world, 1);
  t.is(mx.two.maxConnections, 1);
  await world.clock.passUntil(() => mx.two.connections === 2, { what: 'the connection that it had' });
  gone.open();
  await world.db('nodes').where({ node: 'gone' }).delete();

  await sendMany('four', 4);
  await until(() => mx.four.connections === 4, { what: 'all connections of the first' });
  others.push(await startNode(t, world));
  for (let n = 0; n < 12; n++) {
    await send('four', 1);
    await tickAll(world, 2);
  }
  t.is(mx.four.maxConnections, 4, 'the first has not given any up');
  joined.open();
  await allReceived('four', 16);
  t.is(mx.four.maxConnections, 4);

  await others.pop()!.stop();
  t.is((await world.db('nodes')).length, 1);
  for (let n = 0; n < 3; n++) await tickAll(world, 1);
  await sendMany('single', 3);
  await mx.single.received(3);
  t.is(mx.single.maxConnections, 1);
});
