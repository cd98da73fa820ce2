/** Ages, of times that may lie in the future because a clock was ahead; and the timers of the system's clock. */
import test from 'ava';
import { elapsed, isRecent, steppedTimers } from '#platform/base/clock.ts';

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

test('timers of about the same time wake the process together, and one that is called off leaves nothing', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const after = steppedTimers();
  const cancels = Array.from({ length: 20 }, () => after(60_000, () => t.fail('called off')));
  t.true(timers() <= before + 2);
  for (const cancel of cancels) cancel();
  t.is(timers(), before);
  // Of twenty timers within a few milliseconds, a step may end in between.
  const turns: number[] = [];
  let turn = 0;
  await Promise.all(
    Array.from(
      { length: 20 },
      () =>
        new Promise<void>((resolve) => {
          after(250, () => {
            turns.push(turn);
            setImmediate(() => {
              turn += 1;
              resolve();
            });
          });
        }),
    ),
  );
  t.true(new Set(turns).size <= 2, `${new Set(turns).size} times`);
});
