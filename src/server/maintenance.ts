/**
 * Forgetting what no longer counts, a little at a time, between sends and never in their way. Each chore looks at a
 * bounded number of rows and answers how many it found. While there may be more, it goes on, in turns with others like it
 * and after a rest of four times as long as it took; so what is forgotten in seconds, of which every send leaves a row,
 * never makes a long table. The others have their turn every ten seconds.
 */
import { setTimeout as rest } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import type { MaintenanceJob } from '../db/schema/maintenance-job.ts';

const intervalMs = 10_000;
/** On the real clock: it follows from how long the database took. */
const restsFor = 4;
/** Half of what most of those look at: a young row among many old ones is no end. */
const few = 250;

/** Returns what stops it. */
export function startMaintenance(
  chores: MaintenanceJob[],
  clock: Clock,
  onError: (what: string, error: unknown) => void,
): () => Promise<void> {
  let stopped = false;
  let running = Promise.resolve();
  let cancel = () => {};

  async function work(): Promise<void> {
    let nextForAll = clock.now();
    let unfinished: MaintenanceJob[] = [];
    do {
      const isForAll = clock.now() >= nextForAll;
      if (isForAll) nextForAll = clock.now() + intervalMs;
      unfinished = await round(isForAll ? chores : unfinished);
    } while (unfinished.length > 0);
    if (!stopped) later();
  }

  /** Those of them that may find more at once. */
  async function round(some: MaintenanceJob[]): Promise<MaintenanceJob[]> {
    const unfinished: MaintenanceJob[] = [];
    for (const chore of some) {
      if (stopped) return [];
      const begun = performance.now();
      try {
        const found = await chore.run();
        if (found === 0) continue;
        if (!chore.isFedByMail || found >= few) unfinished.push(chore);
        await rest(restsFor * (performance.now() - begun));
      } catch (error) {
        onError(`upkeep (${chore.name}) failed; trying again later`, error);
      }
    }
    return unfinished;
  }

  function later(): void {
    cancel = clock.after(intervalMs, () => {
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
