/** Large messages are read for delivery one at a time, small ones beside them at once. */
import test from 'ava';
import { createReads } from '#mail/queue/large-reads.ts';

test('large messages are read one after the other, and one that fails holds up none', async (t) => {
  let inFlight = 0;
  const read = createReads(
    async (id) => (id.startsWith('small') ? Buffer.from(id) : null),
    async (id) => {
      t.is(++inFlight, 1, id);
      await new Promise(setImmediate);
      inFlight -= 1;
      if (id === 'broken') throw new Error('it is not in the database');
      return Buffer.from(id);
    },
  );
  const ids = ['a', 'broken', 'small', 'b', 'c'];
  const results = await Promise.allSettled(ids.map(read));
  t.deepEqual(
    results.map((one) => (one.status === 'fulfilled' ? one.value.toString() : null)),
    ['a', null, 'small', 'b', 'c'],
  );
});
