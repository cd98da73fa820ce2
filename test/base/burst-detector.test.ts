import test from 'ava';
import { createBurstDetector } from '../../src/base/burst-detector.ts';

test('a lone one does not; those less than so long apart do, until one is late', (t) => {
  let now = 0;
  const tempo = createBurstDetector(20, () => now);
  const beatAt = (at: number) => {
    now = at;
    tempo.note();
    return tempo.isBurst();
  };
  t.false(tempo.isBurst());
  t.deepEqual([1000, 1019, 1038, 1058, 1060].map(beatAt), [false, true, true, false, true]);
});
