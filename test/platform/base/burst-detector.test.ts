import test from 'ava';
import { createBurstDetector } from '#platform/base/burst-detector.ts';

test('one event is not a burst; events that are close together are, until one comes late', (t) => {
  let now = 0;
  const detector = createBurstDetector(20, () => now);
  const isBurstAfter = (at: number) => {
    now = at;
    detector.note();
    return detector.isBurst();
  };
  t.false(detector.isBurst());
  t.deepEqual([1000, 1019, 1038, 1058, 1060].map(isBurstAfter), [false, true, true, false, true]);
});
