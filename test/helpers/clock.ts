/**
 * A Clock whose hands the test turns. `advance` fires what falls due, in order of time and then of scheduling, with
 * now() standing at each timer's own time, and gives the event loop a few turns around each, so that what a timer
 * starts can schedule more timers inside the same advance. No timer ever fires outside an `advance`.
 *
 * The turns are enough for promises and setImmediate, not for a database or a socket: for those, wait with until()
 * before advancing again.
 */
import { setImmediate as turn } from 'node:timers/promises';
import ms from 'ms';
import type { Clock } from '../../src/clock.ts';

export interface ManualClock extends Clock {
  advance(by: number | ms.StringValue): Promise<void>;
  /** Times of the scheduled timers, earliest first. */
  readonly pending: number[];
}

interface Timer {
  at: number;
  action: () => void;
}

export function manualClock(start: number = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start;
  /** In order of scheduling, which decides between timers of one instant. */
  const timers = new Set<Timer>();

  const sorted = () => [...timers].sort((a, b) => a.at - b.at);

  return {
    now: () => now,
    after(delay, action) {
      const timer = { at: now + Math.max(delay, 0), action };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(by) {
      const target = now + (typeof by === 'number' ? by : ms(by));
      for (;;) {
        await settle();
        const next = sorted()[0];
        if (!next || next.at > target) break;
        timers.delete(next);
        now = next.at;
        next.action();
      }
      now = target;
    },
    get pending() {
      return sorted().map((timer) => timer.at);
    },
  };
}

/** Each turn lets one more link of a chain of promises and immediates run; chains have two or three, not ten. */
async function settle(): Promise<void> {
  for (let n = 0; n < 10; n++) await turn();
}
