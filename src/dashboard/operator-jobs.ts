/** What operators' pages share and keep in memory: a recent look at the queue, the order under way, the doctor's last visit. */
import { orAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Config } from '../config.ts';
import { type Db, openDatabase } from '../db/engine/open.ts';
import {
  applyQueueAction,
  type QueueAction,
  type QueueActionResult,
  type Selection,
} from '../db/queue/apply-queue-action.ts';
import { type Examination, type ExamineProgress, examine } from '../operate/doctor/examine.ts';
import type { Finding } from '../operate/doctor/finding.ts';
import type { Surroundings } from '../operate/doctor/surroundings.ts';
import { readSummary } from '../operate/explain/queue-ages.ts';
import type { QueueRow } from '../operate/explain/queue-rows-by-destination.ts';
import { type BackgroundJobs, createBackgroundJobs } from './background-job.ts';

interface QueueActionJob {
  order: QueueAction;
  selection: Selection;
  reason: string;
  /** Who gave it. */
  by: string;
}

export interface OperatorJobs {
  /** What waits where. */
  summary(): Promise<QueueRow[]>;
  /** Something has been done that the next look is to show. */
  invalidateSummary(): void;
  queueActions: BackgroundJobs<QueueActionJob, { moved: number }, QueueActionResult>;
  /** By the domain that is looked at; null: all. */
  doctor: BackgroundJobs<string | null, ExamineProgress, Finding[]>;
  /** Breaks off what goes on; resolves when none of it asks the database for anything any more. */
  stop(): Promise<void>;
}

interface OperatorJobsParts {
  db: Db;
  clock: Clock;
  config: Config;
  onError(what: string, error: unknown): void;
  surroundings: Partial<Surroundings>;
}

export function createOperatorJobs({
  db,
  clock,
  config,
  onError,
  surroundings,
}: OperatorJobsParts): OperatorJobs {
  const summary = cachedByCost(() => readSummary(db, { now: clock.now() }));
  const queueActions = createBackgroundJobs<QueueActionJob, { moved: number }, QueueActionResult>(
    clock,
    async ({ order, selection, reason }, onProgress, signal) => {
      const onMoved = (moved: number) => onProgress({ moved });
      const given = { order, reason, now: clock.now(), onProgress: onMoved, signal };
      return applyQueueAction(db, selection, given).finally(summary.again);
    },
    (error) => onError('an order to the queue broke off; what it has not reached is as it was', error),
  );
  const doctor = createBackgroundJobs<string | null, ExamineProgress, Finding[]>(
    clock,
    (domain, onProgress, signal) =>
      orAborted(runDoctor({ config, domain, now: clock.now, onProgress, surroundings }), signal),
    (error) => onError('the doctor broke off', error),
  );
  const stop = async () => void (await Promise.all([queueActions.stop(), doctor.stop()]));
  return { summary: summary.latest, invalidateSummary: summary.again, queueActions, doctor, stop };
}

/**
 * By a connection of its own: it only looks, so one that is broken off is left to itself until nothing hangs any more, and
 * the service's is closed by then.
 */
async function runDoctor(examination: Omit<Examination, 'openDb'>): Promise<Finding[]> {
  const opened = openDatabase(examination.config);
  try {
    return await examine({ ...examination, openDb: () => opened });
  } finally {
    void opened.then((db) => db.destroy()).catch(() => {});
  }
}

/** Of all time, a look at a long queue may take so much. */
const maxShareOfTime = 1 / 20;

/** However many pages ask, and however often: one look at a time, and a rest after it that is longer than it took. */
function cachedByCost<Found>(read: () => Promise<Found>) {
  let cached: Promise<Found> | null = null;
  let freshUntil = Number.POSITIVE_INFINITY;
  const invalidate = () => {
    cached = null;
  };
  const latest = async (): Promise<Found> => {
    if (cached === null || performance.now() >= freshUntil) {
      const began = performance.now();
      freshUntil = Number.POSITIVE_INFINITY;
      const mine = read();
      cached = mine;
      mine.then(
        () => {
          const ended = performance.now();
          freshUntil = ended + (ended - began) / maxShareOfTime;
        },
        () => invalidate(),
      );
    }
    return cached;
  };
  return { latest, again: invalidate };
}
