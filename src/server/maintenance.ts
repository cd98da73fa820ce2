/**
 * Runs the maintenance jobs, which delete rows that are no longer needed. Each run handles a bounded number of rows and
 * returns how many it found. All jobs run every ten seconds. A job that may find more runs again at once, in turn with the
 * others of that kind, after a pause of four times its duration: so tables that get a row from every send stay short, and
 * sends are not delayed.
 */
import { setTimeout as rest } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import type { MaintenanceJob } from '../db/schema/maintenance-job.ts';

const intervalMs = 10_000;
/** The pause runs on the real clock, because it is derived from the time that the database took. */
const pauseFactor = 4;
/** Half the batch of most of these jobs: a batch that contains some young rows is not the end. */
const smallBatch = 250;

/** Returns a function that stops the jobs. */
export function startMaintenance(
  jobs: MaintenanceJob[],
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
      unfinished = await round(isForAll ? jobs : unfinished);
    } while (unfinished.length > 0);
    if (!stopped) later();
  }

  /** Returns the jobs that may find more at once. */
  async function round(some: MaintenanceJob[]): Promise<MaintenanceJob[]> {
    const unfinished: MaintenanceJob[] = [];
    for (const job of some) {
      if (stopped) return [];
      const begun = performance.now();
      try {
        const found = await job.run();
        if (found === 0) continue;
        if (!job.isFedByMail || found >= smallBatch) unfinished.push(job);
        await rest(pauseFactor * (performance.now() - begun));
      } catch (error) {
        onError(`maintenance (${job.name}) failed; trying again later`, error);
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
