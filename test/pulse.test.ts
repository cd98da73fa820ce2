import test from 'ava';
import { createPulse } from '../src/pulse.ts';

test('a lone one is not often, those that follow each other closely are, until one is late', (t) => {
  let now = 0;
  const pulse = createPulse(20, () => now);
  const beatAt = (at: number) => {
    now = at;
    pulse.beat();
    return pulse.isOften();
  };
  t.false(pulse.isOften());
  t.deepEqual([1000, 1019, 1038, 1058, 1060].map(beatAt), [false, true, true, false, true]);
});
