/** When to try again: the waits, their spread, and the end of a mail's time. */
import test from 'ava';
import { nextAttemptAt } from '#mail/queue/schedule.ts';
import { loadConfig } from '#platform/settings/config.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const middle = () => 0.5;
const start = Date.UTC(2026, 0, 1);
const never = start + 1000 * hour;

/** The wait after so many attempts, with the dice lying at `dice`. */
function waitAfter(attempts: number, { waits, dice = 0.5 }: { waits: readonly number[]; dice?: number }) {
  return nextAttemptAt({ waits, random: () => dice }, { attempts, now: start, expiresAt: never })! - start;
}

/** The times of all attempts of a mail that is deferred each time, counted from its acceptance. */
function attemptsOf({
  waits,
  maxAge,
  random = middle,
}: {
  waits: readonly number[];
  maxAge: number;
  random?: () => number;
}) {
  const times: number[] = [];
  let now: number | null = start;
  while (now !== null) {
    times.push(now - start);
    now = nextAttemptAt({ waits, random }, { attempts: times.length, now, expiresAt: start + maxAge });
  }
  return times;
}

test('each attempt waits for its own turn of the list', (t) => {
  const waits = [30 * second, 2 * minute, hour];
  t.deepEqual(
    [1, 2, 3].map((attempts) => waitAfter(attempts, { waits })),
    waits,
  );
});

test('past the end of the list the last wait repeats', (t) => {
  const waits = [second, minute];
  t.deepEqual(
    [2, 3, 4, 100].map((attempts) => waitAfter(attempts, { waits })),
    Array(4).fill(minute),
  );
  t.is(waitAfter(7, { waits: [hour] }), hour);
});

test('a wait is spread by a fifth up and down, evenly', (t) => {
  const waits = [100 * second];
  const wait = (dice: number) => waitAfter(1, { waits, dice });
  t.is(wait(0), 80 * second);
  t.is(wait(0.25), 90 * second);
  t.is(wait(0.5), 100 * second);
  t.is(wait(0.75), 110 * second);
  t.is(wait(1 - Number.EPSILON), 120 * second, 'rounded up, never more');
});

test('a time is a whole millisecond', (t) => {
  for (const dice of [0.1, 0.123456, 0.3333333, 0.999]) {
    t.true(Number.isInteger(waitAfter(1, { waits: [333], dice })), String(dice));
  }
});

test('each wait takes one random number', (t) => {
  let thrown = 0;
  const random = () => {
    thrown += 1;
    return 0;
  };
  nextAttemptAt({ waits: [second], random }, { attempts: 1, now: start, expiresAt: never });
  t.is(thrown, 1);
});

test('no wait leads beyond the maximum age: the last attempt is made at it', (t) => {
  const schedule = { waits: [hour], random: middle };
  const expiresAt = start + 10 * minute;
  t.is(nextAttemptAt(schedule, { attempts: 1, now: start, expiresAt }), expiresAt);
  t.is(nextAttemptAt(schedule, { attempts: 9, now: expiresAt - 1, expiresAt }), expiresAt);
  t.is(
    nextAttemptAt({ waits: [10 * minute], random: middle }, { attempts: 1, now: start, expiresAt }),
    expiresAt,
    'a wait that ends just then is not cut',
  );
});

test('at its maximum age, and after it, a mail has no next attempt', (t) => {
  const schedule = { waits: [second], random: middle };
  t.is(nextAttemptAt(schedule, { attempts: 1, now: start, expiresAt: start }), null);
  t.is(nextAttemptAt(schedule, { attempts: 1, now: start + 1, expiresAt: start }), null);
});

test('a mail is tried at once, along the list, and for the last time at its maximum age', (t) => {
  const waits = [minute, 5 * minute];
  t.deepEqual(
    attemptsOf({ waits, maxAge: 20 * minute }),
    [0, 1, 6, 11, 16, 20].map((at) => at * minute),
  );
});

test('with the defaults, a mail is tried twenty times in two days', (t) => {
  const { mtaRetry: waits, mtaMaxAge: maxAge } = loadConfig({});
  const times = attemptsOf({ waits, maxAge });
  t.is(times.length, 20);
  t.is(times[1], 30 * second);
  t.is(times.at(-1), 48 * hour);
  const gaps = times.slice(1).map((at, index) => at - times[index]!);
  t.deepEqual(
    gaps.slice(0, -1),
    [...gaps.slice(0, -1)].sort((a, b) => a - b),
    'the waits only grow',
  );
});

test('with any random numbers, every wait is within its bounds and the last attempt within the maximum age', (t) => {
  const { mtaRetry: waits, mtaMaxAge: maxAge } = loadConfig({});
  for (let round = 0; round < 200; round++) {
    const times = attemptsOf({ waits, maxAge, random: Math.random });
    t.is(times.at(-1), maxAge);
    for (const [index, at] of times.slice(1, -1).entries()) {
      const share = (at - times[index]!) / waits[Math.min(index, waits.length - 1)]!;
      if (share < 0.8 - 1e-6 || share > 1.2 + 1e-6) t.fail(`wait ${index + 1} was ${share} of its length`);
    }
  }
});

test('a hint is the wait, spread upward by a tenth and never down', (t) => {
  const waits = [30 * second, 2 * minute];
  const wait = (dice: number, hintMs: number | null) =>
    nextAttemptAt({ waits, random: () => dice }, { attempts: 1, now: start, expiresAt: never, hintMs })! -
    start;
  t.is(wait(0, 300 * second), 300 * second);
  t.is(wait(0.5, 300 * second), 315 * second);
  t.is(wait(1 - Number.EPSILON, 300 * second), 330 * second);
  t.is(wait(0, 5 * second), 5 * second, 'sooner than the first wait too');
  t.is(wait(0, 0), second, 'but never at once');
  t.is(wait(0.5, null), 30 * second, 'none: the ordinary wait');
});

test('a hint shortens a wait to no less than that of half as many attempts', (t) => {
  const waits = [1, 2, 3, 4, 5].map((minutes) => minutes * minute);
  const after = (attempts: number, hintMs: number) =>
    nextAttemptAt({ waits, random: () => 0 }, { attempts, now: start, expiresAt: never, hintMs })! - start;
  const min = [2, 3, 4, 5, 6, 10, 50].map((attempts) => after(attempts, second) / minute);
  t.deepEqual(min, [1, 1, 2, 2, 3, 5, 5]);
  t.is(after(50, hour), hour, 'and lengthens it as it says');
});

test('no hint leads beyond the maximum age', (t) => {
  const expiresAt = start + hour;
  const deferred = { attempts: 1, now: start, expiresAt, hintMs: 24 * hour };
  t.is(nextAttemptAt({ waits: [second], random: middle }, deferred), expiresAt);
  t.is(nextAttemptAt({ waits: [second], random: middle }, { ...deferred, now: expiresAt }), null);
});

test('mail with a deadline is tried several times before it, and never at it or after it', (t) => {
  const waits = loadConfig({}).mtaRetry;
  const expectations: [seconds: number, min: number, max: number][] = [
    [10, 3, 4],
    [60, 4, 8],
    [600, 4, 10],
    [48 * 3600, 8, 40],
  ];
  for (const [seconds, min, max] of expectations) {
    for (const hintMs of [null, 1, 15 * minute, 10 * hour]) {
      for (const dice of [0, 0.5, 0.999]) {
        const expiresAt = start + seconds * second;
        const times: number[] = [];
        for (let now: number | null = start; now !== null; ) {
          times.push(now);
          const deferred = { attempts: times.length, now, expiresAt, hasDeadline: true, hintMs };
          now = nextAttemptAt({ waits, random: () => dice }, deferred);
        }
        t.true(times.at(-1)! < expiresAt, `${seconds} s: the last after ${times.at(-1)! - start} ms`);
        if (hintMs !== 1)
          t.true(times.length >= min && times.length <= max, `${seconds} s: ${times.length} attempts`);
      }
    }
  }
});
