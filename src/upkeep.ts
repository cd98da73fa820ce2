/**
 * Forgetting what no longer counts, a little at a time, between sends and never in their way. Each chore looks at a
 * bounded number of rows and answers how many it found. While any finds some they go on in turns, after a rest of four
 * times as long as it took; so what is forgotten in seconds, of which every send leaves a row, never makes a long table.
 */
import { setTimeout as rest } from 'node:timers/promises';
import type { Clock } from './clock.ts';

export interface Chore {
  name: string;
  run(): Promise<number>;
}

const everyMs = 10_000;
/** On the real clock: it follows from how long the database took. */
const restsFor = 4;

/** Returns what stops it. */
export function startUpkeep(
  chores: Chore[],
  clock: Clock,
  onTrouble: (what: string, error: unknown) => void,
): () => Promise<void> {
  let stopped = false;
  let running = Promise.resolve();
  let cancel = () => {};

  async function work(): Promise<void> {
    while (!stopped && (await round()));
    if (!stopped) later();
  }

  /** True where there may be more. */
  async function round(): Promise<boolean> {
    let isMore = false;
    for (const { name, run } of chores) {
      if (stopped) break;
      const begun = performance.now();
      try {
        if ((await run()) === 0) continue;
        isMore = true;
        await rest(restsFor * (performance.now() - begun));
      } catch (error) {
        onTrouble(`upkeep (${name}) failed; trying again later`, error);
      }
    }
    return isMore;
  }

  function later(): void {
    cancel = clock.after(everyMs, () => {
      running = work();
    });
  }

  later();
  return async () => {
    stopped = true;
    cancel();
    await running;
  };
}
