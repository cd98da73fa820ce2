/**
 * The state that the operators' pages share in memory: a recent summary of the queue, the running queue action, the doctor's
 * last run.
 */

import {
  applyQueueAction,
  type QueueAction,
  type QueueActionResult,
  type Selection,
} from '#mail/queue/rows/apply-queue-action.ts';
import { type Examination, type ExamineProgress, examine } from '#operate/doctor/examine.ts';
import type { Finding } from '#operate/doctor/finding.ts';
import type { Surroundings } from '#operate/doctor/surroundings.ts';
import { type QueueRow, readSummary } from '#operate/explain/queue-rows-by-destination.ts';
import { readStatus, type Status } from '#operate/status/read-status.ts';
import type { Clock } from '#platform/base/clock.ts';
import { orAborted } from '#platform/base/waits.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { type BackgroundJobs, createBackgroundJobs } from './background-job.ts';

interface QueueActionJob {
  action: QueueAction;
  selection: Selection;
  reason: string;
  /** Email address of the operator. */
  by: string;
}

export interface OperatorJobs {
  /** The verdict on this server and what is wrong, possibly a little old. */
  status(): Promise<Status>;
  /** Queued mail by destination, possibly a little old. */
  summary(): Promise<QueueRow[]>;
  /** Makes the next `summary` read the database again, after a change that it must show. */
  invalidateSummary(): void;
  queueActions: BackgroundJobs<QueueActionJob, { changed: number }, QueueActionResult>;
  /** The request is the domain to check; null for all. */
  doctor: BackgroundJobs<string | null, ExamineProgress, Finding[]>;
  /** Aborts running jobs; resolves when none of them uses the database any more. */
  stop(): Promise<void>;
}

export function createOperatorJobs(parts: {
  db: Db;
  clock: Clock;
  config: Config;
  onError(what: string, error: unknown): void;
  surroundings: Partial<Surroundings>;
}): OperatorJobs {
  const { db, clock, config, onError, surroundings } = parts;
  const summary = cachedByCost(() => readSummary(db, { now: clock.now() }));
  const status = cachedByCost(() => readStatus({ db, config, now: clock.now() }));
  const queueActions = createBackgroundJobs<QueueActionJob, { changed: number }, QueueActionResult>(
    clock,
    async ({ action, selection, reason }, onProgress, signal) => {
      const onChanged = (changed: number) => onProgress({ changed });
      const options = { action, reason, now: clock.now(), onProgress: onChanged, signal };
      return applyQueueAction(db, selection, options).finally(summary.invalidate);
    },
    (error) => onError('a queue action failed; the mail that it did not reach is unchanged', error),
  );
  const doctor = createBackgroundJobs<string | null, ExamineProgress, Finding[]>(
    clock,
    (domain, onProgress, signal) =>
      orAborted(runDoctor({ config, domain, now: clock.now, onProgress, surroundings }), signal),
    (error) => onError('the doctor failed', error),
  );
  const stop = async () => void (await Promise.all([queueActions.stop(), doctor.stop()]));
  return {
    status: status.latest,
    summary: summary.latest,
    invalidateSummary: summary.invalidate,
    queueActions,
    doctor,
    stop,
  };
}

/**
 * With a database connection of its own: the doctor only reads, so an aborted run is left to end by itself, which may be after
 * the server's connection is closed.
 */
async function runDoctor(examination: Omit<Examination, 'openDb'>): Promise<Finding[]> {
  const opened = openDatabase(examination.config);
  try {
    return await examine({ ...examination, openDb: () => opened });
  } finally {
    void opened.then((db) => db.destroy()).catch(() => {});
  }
}

/** Reading the summary of a long queue may take this share of the time. */
const maxShareOfTime = 1 / 20;

/** One read at a time, however many pages ask; the result is kept for a multiple of the time that the read took. */
function cachedByCost<Found>(read: () => Promise<Found>) {
  let cached: Promise<Found> | null = null;
  let freshUntil = Number.POSITIVE_INFINITY;
  const invalidate = () => {
    cached = null;
  };
  const latest = async (): Promise<Found> => {
    if (cached === null || performance.now() >= freshUntil) {
      const startedAt = performance.now();
      freshUntil = Number.POSITIVE_INFINITY;
      const reading = read();
      cached = reading;
      reading.then(
        () => {
          const endedAt = performance.now();
          freshUntil = endedAt + (endedAt - startedAt) / maxShareOfTime;
        },
        () => invalidate(),
      );
    }
    return cached;
  };
  return { latest, invalidate };
}
