/**
 * Runs the maintenance jobs, which delete rows that are no longer needed. Each run handles a bounded number of rows and
 * returns how many it found. All jobs run after each minute in which something was committed, and urgent ones after each ten
 * seconds. While nothing is committed, rows only grow older: timely jobs still run every minute, the others every ten. A job that
 * may find more runs again at once, in turn with the others of that kind, after a pause of four times its duration: so tables that
 * get a row from every send stay short, and sends are not delayed.
 *
 * Jobs that wait for strangers' servers (`isRemote`) run beside the others, each by itself: an organization whose DNS does not
 * answer would hold up the statistics, the notices and the deletions of all.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, isRecent, untilPoll } from '#platform/base/clock.ts';
import type { MaintenanceJob } from '#platform/database/schema/maintenance-job.ts';

const intervalMs = 10_000;
const minuteMs = 60_000;
const quietIntervalMs = 10 * minuteMs;
/** The pause runs on the real clock, because it is derived from the time that the database took. */
const pauseFactor = 4;
/** Pause between runs of a remote job: its duration says nothing about the load of the database. */
const remotePauseMs = 100;
/** Half the batch of most of these jobs: a batch that contains some young rows is not the end. */
const smallBatch = 250;

interface MaintenanceParts {
  jobs: MaintenanceJob[];
  /** Another one than before: something was committed in between. Null: not known. */
  changeToken(): Promise<string | null>;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

/** Returns a function that stops the jobs. */
export function startMaintenance(parts: MaintenanceParts): () => Promise<void> {
  const { jobs, changeToken, clock, onError } = parts;
  let ranTimelyAt = Number.NEGATIVE_INFINITY;
  let ranAllAt = Number.NEGATIVE_INFINITY;
  /** Something was committed since all have run. */
  let isStale = false;
  let seen: string | null = null;
  let stopped = false;
  let running = Promise.resolve();
  let cancel = () => {};
  const foundBy = orNone((what, error) => {
    seen = null;
    onError(what, error);
  });
  const remote = new RemoteJobs(foundBy);

  async function work(): Promise<void> {
    // The jobs report what is wrong with the database.
    const token = await changeToken().catch(() => null);
    let isUrgent = token === null || token !== seen;
    seen = token;
    isStale ||= isUrgent;
    let nextAt = clock.now();
    let unfinished: MaintenanceJob[] = [];
    do {
      const now = clock.now();
      const isForTimely = !isRecent(ranTimelyAt, now, minuteMs);
      if (isForTimely) ranTimelyAt = now;
      const isForAll = isForTimely && (isStale || !isRecent(ranAllAt, now, quietIntervalMs));
      if (isForAll) {
        ranAllAt = now;
        isStale = false;
      }
      const isForUrgent = isUrgent && now >= nextAt;
      if (isForUrgent) nextAt = now + intervalMs;
      const isDue = (job: MaintenanceJob) =>
        isForAll || (isForTimely && job.isTimely) || (isForUrgent && job.isUrgent);
      unfinished = await round(jobs.filter((job) => isDue(job) || unfinished.includes(job)));
      isUrgent = true;
      isStale ||= unfinished.length > 0;
    } while (unfinished.length > 0);
    later();
  }

  /** Returns the jobs that may find more at once. */
  async function round(some: MaintenanceJob[]): Promise<MaintenanceJob[]> {
    const unfinished: MaintenanceJob[] = [];
    for (const job of some) {
      if (stopped) return [];
      const begun = performance.now();
      const found = job.isRemote ? remote.start(job) : await foundBy(job);
      if (found > 0 && (!job.isFedByMail || found >= smallBatch)) unfinished.push(job);
      if (found > 0) await sleep(pauseFactor * (performance.now() - begun));
    }
    return unfinished;
  }

  function later(): void {
    if (stopped) return;
    cancel = clock.after(untilPoll(clock.now(), intervalMs), () => {
      running = work();
    });
  }

  later();
  return async () => {
    stopped = true;
    cancel();
    await Promise.all([running, remote.stop()]);
  };
}

/** How many a job finds; none, if it fails. */
const orNone = (onError: MaintenanceParts['onError']) => (job: MaintenanceJob) =>
  job.run().catch((error: unknown) => {
    onError(`maintenance (${job.name}) failed; trying again later`, error);
    return 0;
  });

class RemoteJobs {
  readonly #foundBy: (job: MaintenanceJob) => Promise<number>;
  readonly #running = new Map<MaintenanceJob, Promise<void>>();
  #isStopped = false;

  constructor(foundBy: (job: MaintenanceJob) => Promise<number>) {
    this.#foundBy = foundBy;
  }

  /** Unless it runs. Nothing is found at once. */
  start(job: MaintenanceJob): 0 {
    if (!this.#running.has(job)) {
      const ended = this.#toItsEnd(job).finally(() => this.#running.delete(job));
      this.#running.set(job, ended);
    }
    return 0;
  }

  async #toItsEnd(job: MaintenanceJob): Promise<void> {
    while ((await this.#foundBy(job)) > 0 && !this.#isStopped) await sleep(remotePauseMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#running.values());
  }
}
