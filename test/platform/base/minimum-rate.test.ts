import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { systemClock } from '#platform/base/clock.ts';
import { createMinimumRate } from '#platform/base/minimum-rate.ts';

function scene() {
  const clock = manualClock();
  const rate = createMinimumRate({ clock, bytesPerSecond: 1000, graceMs: 10_000 });
  let tooSlow = 0;
  const timer = rate.watch(() => {
    tooSlow += 1;
  });
  return { clock, timer, tooSlow: () => tooSlow };
}

test('a client that sends nothing is reported after the grace period, once', async (t) => {
  const { clock, tooSlow } = scene();
  await clock.advance(9_999);
  t.is(tooSlow(), 0);
  await clock.advance(60_000);
  t.is(tooSlow(), 1);
});

test('a client that keeps the rate is never reported; at half the rate it is, later', async (t) => {
  const { clock, timer, tooSlow } = scene();
  for (let second = 0; second < 100; second += 1) {
    timer.received(1000);
    await clock.advance(1000);
  }
  t.is(tooSlow(), 0);
  // The bytes before gave it no more than the grace period.
  for (let second = 0; second < 16; second += 1) {
    timer.received(500);
    await clock.advance(1000);
  }
  t.is(tooSlow(), 0);
  for (let second = 0; second < 4; second += 1) {
    timer.received(500);
    await clock.advance(1000);
  }
  t.is(tooSlow(), 1);
});

test('a burst extends the deadline by the grace period at most, and a stopped transfer is not reported', async (t) => {
  const { clock, timer, tooSlow } = scene();
  timer.received(10_000_000);
  await clock.advance(10_001);
  t.is(tooSlow(), 1);
  const other = scene();
  await other.clock.advance(5000);
  other.timer.stop();
  await other.clock.advance(60_000);
  t.is(other.tooSlow(), 0);
});

test('the time in which this thread was busy is not the client’s', async (t) => {
  const clock = systemClock;
  let tooSlow = 0;
  const timer = createMinimumRate({ clock, bytesPerSecond: 1000, graceMs: 50 }).watch(() => {
    tooSlow += 1;
  });
  for (const end = performance.now() + 250; performance.now() < end; );
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.is(tooSlow, 0);
  timer.stop();
});
