/** The plan of a new source address: a day's allowance from the days before. */
import test from 'ava';
import {
  allowanceOf,
  dayMs,
  forecastOf,
  isWarm,
  lastStep,
  maxDays,
  newWarmUp,
  nextDay,
  nextStep,
  roomAfter,
  type WarmUp,
} from '#mail/deliver/warm-up-plan.ts';

const none = { complained: 0, delivered: 0 };
const at = (step: number, day: Partial<WarmUp>): WarmUp => ({ ...newWarmUp(0), step, ...day });

test('allowances grow by half, in two digits', (t) => {
  const all = Array.from({ length: lastStep }, (_, index) => allowanceOf(index + 1));
  t.deepEqual(all.slice(0, 6), [100, 150, 230, 340, 510, 760]);
  t.is(all.at(-1), 220_000);
});

const days: [string, Partial<WarmUp>, typeof none, number][] = [
  ['a quarter of it used', { used: 58 }, none, 4],
  ['less used', { used: 57 }, none, 3],
  ['nothing used', { used: 0 }, none, 3],
  ['few deferred, by chance', { used: 10, deferred: 4 }, none, 3],
  ['a twentieth deferred', { used: 190, deferred: 10 }, none, 3],
  ['less than a twentieth deferred', { used: 191, deferred: 10 }, none, 4],
  ['a fifth deferred', { used: 200, deferred: 50 }, none, 2],
  ['all deferred', { used: 0, deferred: 300 }, none, 2],
  ['one complaint', { used: 230 }, { complained: 1, delivered: 1 }, 4],
  ['some complaints', { used: 230 }, { complained: 2, delivered: 2_000 }, 3],
  ['many complaints', { used: 230 }, { complained: 3, delivered: 1_000 }, 2],
  ['complaints about the mail of other days', { used: 230 }, { complained: 3, delivered: 0 }, 2],
];

for (const [name, day, complaints, step] of days)
  test(`the next step after ${name}`, (t) => t.is(nextStep(at(3, day), complaints), step));

test('no step is before the first', (t) => t.is(nextStep(at(1, { deferred: 100 }), none), 1));

test('days keep the hour of the first mail, and days without mail do not count', (t) => {
  const first = newWarmUp(1_000);
  const second = nextDay({ ...first, used: 100 }, none, 1_000 + dayMs);
  t.deepEqual(second, { day: 2, step: 2, beganAt: 1_000 + dayMs, used: 0, deferred: 0 });
  const third = nextDay(second, none, 1_000 + 9.5 * dayMs);
  t.deepEqual(third, { day: 3, step: 2, beganAt: 1_000 + 9 * dayMs, used: 0, deferred: 0 });
});

test('the plan ends after its last step, and after 60 days with mail', (t) => {
  t.false(isWarm(at(lastStep, {})));
  t.true(isWarm(at(lastStep + 1, {})));
  t.false(isWarm(at(1, { day: maxDays })));
  t.true(isWarm(at(1, { day: maxDays + 1 })));
});

test('the forecast is what comes if all goes well', (t) => {
  t.deepEqual(forecastOf(at(1, {})), { tomorrow: 150, daysLeft: 20 });
  t.deepEqual(forecastOf(at(2, { day: maxDays - 1 })), { tomorrow: 230, daysLeft: 2 });
  t.deepEqual(forecastOf(at(lastStep, {})), { tomorrow: null, daysLeft: 1 });
  t.is(roomAfter([at(1, {}), at(2, {})], 1), 380);
  t.is(roomAfter([at(1, {})], lastStep), Number.POSITIVE_INFINITY);
});
