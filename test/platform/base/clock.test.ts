/** Ages, of times that may lie in the future because a clock was ahead. */
import test from 'ava';
import { elapsed, isRecent } from '#platform/base/clock.ts';

test('what is from a time to come is never young, but nodes may differ a little', (t) => {
  const now = Date.UTC(2026, 0, 1);
  const hour = 3_600_000;
  for (const [age, ms, expected] of [
    [0, hour, true],
    [hour - 1, hour, true],
    [hour, hour, false],
    [-2 * hour, hour, false],
    [-2 * hour, 24 * hour, false],
    [-1_000, hour, true],
    [-2_000, hour, false],
    [-999, 1_000, true],
    [-1_000, 1_000, false],
    [Number.POSITIVE_INFINITY, hour, false],
  ] as const) {
    t.is(isRecent(now - age, now, ms), expected, `${age} of ${ms}`);
  }
  t.is(elapsed(now - 5, now), 5);
  t.is(elapsed(now + hour, now), 0);
});
