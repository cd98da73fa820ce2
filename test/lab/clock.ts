/**
 * A Clock whose hands the test turns. `advance` fires what falls due, in order of time and then of scheduling, with
 * now() standing at each timer's own time, and gives the event loop a few turns around each, so that what a timer
 * starts can schedule more timers inside the same advance. No timer ever fires outside an `advance` or a `jump`.
 *
 * The turns are enough for promises and setImmediate, not for a database or a socket: what the program does after their
 * answer may come later than the end of the advance, and so does the timer that it sets then. Wait for it with passUntil().
 * At its end, an advance also waits until `isBusy` says that no statement runs; for a moment only, because a test may hold
 * them up.
 */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import ms from 'ms';
import type { Clock } from '#platform/base/clock.ts';
import { type Truthy, type UntilOptions, until } from './until.ts';

export interface ManualClock extends Clock {
  advance(by: number | ms.StringValue): Promise<void>;
  /** As until(), and the clock goes on by a step, usually a second, each time that the condition does not hold. */
  passUntil<T>(
    condition: () => T | Promise<T>,
    options?: UntilOptions & { step?: number | ms.StringValue },
  ): Promise<Truthy<T>>;
  /**
   * As after a sleep of the machine: it is so much later at once, and what has fallen due meanwhile fires then, each timer
   * once. A chore of every ten seconds runs once in a day of this, not 8,640 times.
   */
  jump(by: number | ms.StringValue): Promise<void>;
  /** As by a time server: it is so much earlier at once, and what was scheduled comes when it would have come. */
  setBack(by: number | ms.StringValue): void;
  /** Times of the scheduled timers, earliest first. */
  readonly pending: number[];
}

interface Timer {
  at: number;
  action: () => void;
}

const patienceMs = 50;

/** A longer advance goes in so many steps at most, and a timer fires as much later: a day has 86,400 polls of a second. */
const exactMs = ms('59m');
const maxSteps = 360;

export function manualClock(
  start: number = Date.UTC(2026, 0, 1),
  isBusy: () => boolean = () => false,
): ManualClock {
  let now = start;
  /** In order of scheduling, which decides between timers of one instant. */
  const timers = new Set<Timer>();

  const inMs = (by: number | ms.StringValue) => (typeof by === 'number' ? by : ms(by));
  const sorted = () => [...timers].sort((a, b) => a.at - b.at);

  function fire(timer: Timer): void {
    // The one before may have called it off.
    if (timers.delete(timer)) timer.action();
  }

  function fireDue(): void {
    for (const timer of sorted().filter(({ at }) => at <= now)) fire(timer);
  }

  const clock: ManualClock = {
    now: () => now,
    after(delay, action) {
      const timer = { at: now + Math.max(delay, 0), action };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(by) {
      const target = now + inMs(by);
      const late = inMs(by) > exactMs ? inMs(by) / maxSteps : 0;
      for (;;) {
        await settle();
        const next = sorted()[0];
        if (!next || next.at > target) break;
        now = Math.min(next.at + late, target);
        if (late > 0) fireDue();
        else fire(next);
      }
      now = target;
      const end = performance.now() + patienceMs;
      while (isBusy() && performance.now() < end) {
        await sleep(1);
        // What follows from an answer.
        await settle();
      }
    },
    passUntil(condition, { step = '1s', ...options } = {}) {
      const holds = async () => {
        const result = await condition();
        if (!result) await clock.advance(step);
        return result;
      };
      return until(holds, { maxPauseMs: 10, ...options });
    },
    async jump(by) {
      await settle();
      now += inMs(by);
      fireDue();
      await settle();
    },
    setBack(by) {
      now -= inMs(by);
      for (const timer of timers) timer.at -= inMs(by);
    },
    get pending() {
      return sorted().map((timer) => timer.at);
    },
  };
  return clock;
}

/** Each turn lets one more link of a chain of promises and immediates run; chains have two or three, not ten. */
async function settle(): Promise<void> {
  for (let n = 0; n < 10; n++) await turn();
}
