/** The clock of the tests: order, standing still, and timers that schedule timers. */
import test from 'ava';
import { manualClock } from './clock.ts';

test('time stands still until it is advanced', async (t) => {
  const clock = manualClock(1000);
  clock.after(10, () => t.fail('nobody advanced the clock'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.is(clock.now(), 1000);
  t.is(manualClock().now(), Date.UTC(2026, 0, 1));
});

test('timers fire in order, at their own time, and only those that are due', async (t) => {
  const clock = manualClock(0);
  const fired: string[] = [];
  for (const [name, delay] of Object.entries({ c: 3000, a: 1000, b: 2000, b2: 2000, late: 5001 })) {
    clock.after(delay, () => fired.push(`${name} ${clock.now()}`));
  }
  t.deepEqual(clock.pending, [1000, 2000, 2000, 3000, 5001]);
  await clock.advance('5s');
  t.deepEqual(fired, ['a 1000', 'b 2000', 'b2 2000', 'c 3000']);
  t.is(clock.now(), 5000);
  t.deepEqual(clock.pending, [5001]);
});

test('a cancelled timer does not fire, even when cancelled by an earlier one', async (t) => {
  const clock = manualClock(0);
  const cancel = clock.after(20, () => t.fail('cancelled'));
  clock.after(10, cancel);
  await clock.advance(100);
  t.deepEqual(clock.pending, []);
});

test('a timer that is set after some asynchronous work fires inside the same advance', async (t) => {
  const clock = manualClock(0);
  const beats: number[] = [];
  const beat = async () => {
    beats.push(clock.now());
    await Promise.resolve();
    await new Promise(setImmediate);
    clock.after(60_000, beat);
  };
  clock.after(60_000, beat);
  await clock.advance('5m');
  t.deepEqual(beats, [60_000, 120_000, 180_000, 240_000, 300_000]);
  t.deepEqual(clock.pending, [360_000]);
});

test('after a jump what fell due has fired once, in order, and all of it later', async (t) => {
  const clock = manualClock(0);
  const fired: string[] = [];
  const beat = () => {
    fired.push(`beat ${clock.now()}`);
    clock.after(10_000, beat);
  };
  clock.after(10_000, beat);
  clock.after(5_000, () => fired.push(`first ${clock.now()}`));
  const cancel = clock.after(30_000, () => t.fail('cancelled'));
  clock.after(20_000, cancel);
  clock.after(90_000, () => t.fail('not yet'));
  await clock.jump('1m');
  t.deepEqual(fired, ['first 60000', 'beat 60000']);
  t.deepEqual(clock.pending, [70_000, 90_000]);
});

test('passUntil lets time pass until the condition holds, and no longer', async (t) => {
  const clock = manualClock(0);
  clock.after(2500, () => clock.after(2000, () => {}));
  t.is(await clock.passUntil(() => clock.pending[0]! > 4000 && 'set'), 'set');
  t.is(clock.now(), 3000);
});
