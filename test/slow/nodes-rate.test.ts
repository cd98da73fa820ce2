/** Several nodes share the rate of a destination: a hundred seconds of it. */
import test from 'ava';
import { startLimitedNodes } from '#lab/scenes/limited-nodes.ts';
import { tickAll } from '#lab/scenes/nodes.ts';
import { until } from '#lab/until.ts';

test('three nodes begin no more in a minute than the destination’s rate', async (t) => {
  const { world, mx, sendMany } = await startLimitedNodes(t, 3, { there: { rule: { perMinute: 6 } } });
  await sendMany('there', 24);
  const counts: number[] = [];
  const quiet = async () => (await world.db('deliveries').where({ status: 'sending' })).length <= 3;
  for (let n = 0; n < 100; n++) {
    await tickAll(world, 3);
    await until(quiet, { what: 'what was begun to end' });
    counts.push(mx.there.messages.length);
  }
  // What is begun at one second may be seen at the next: a little less than a minute.
  for (const [at, count] of counts.entries()) {
    const before = counts[at - 57] ?? 0;
    t.true(count - before <= 6, `${count - before} in the minute before second ${at}`);
  }
  t.true(counts.at(-1)! >= 6, `${counts.at(-1)} in all`);
});
