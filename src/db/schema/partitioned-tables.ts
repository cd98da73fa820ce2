/**
 * The chores of the tables that every mail adds to. SQLite deletes what is old, a little at a time. On PostgreSQL their
 * partitions are cut ahead and dropped when all in them is old; deletes are for what would wait too long for that, in a
 * partition of slow times or from before the upgrade.
 *
 * So what is told to be kept for some time is kept for a quarter longer at most, or two days: a partition spans an
 * eighth of that time, a day at least, a month at most. Emails refer to rows of tables that are not cut, so they go one
 * by one on both, with those; what is left of a partition then is dropped.
 */

import { type Db, isPostgres } from '../engine/open.ts';
import { forgetEmails } from '../events/forget-emails.ts';
import { forgetAttempts, forgetEvents } from '../events/retention.ts';
import type { MaintenanceJob } from './maintenance-job.ts';
import type { PartitionedTable } from './partitions.ts';
import { cutAhead } from './partitions-ahead.ts';
import { dropPast } from './partitions-past.ts';

export interface PartitionedTablesParts {
  db: Db;
  openPatient(): Promise<Db>;
  now(): number;
  keepEvents: number;
  /** Null: for good. */
  keepEmails: number | null;
}

const dayMs = 86_400_000;
const eighths = 8;

/** In whole days. */
function periodOf(keepMs: number, maxDays: number): number {
  return Math.min(Math.max(Math.ceil(keepMs / eighths / dayMs), 1), maxDays) * dayMs;
}

export function partitionJobs(parts: PartitionedTablesParts): MaintenanceJob[] {
  const { db, now, keepEvents, keepEmails } = parts;
  const old = () => now() - keepEvents;
  const oneByOne = (until: () => number): MaintenanceJob[] => [
    { name: 'attempts', isFedByMail: true, run: () => forgetAttempts(db, until()) },
    { name: 'events', isFedByMail: true, run: () => forgetEvents(db, until()) },
  ];
  const emails = keepEmails === null ? [] : [{ name: 'emails', run: forgetEmails(db, now, keepEmails) }];
  if (!isPostgres(db)) return [...oneByOne(old), ...emails];
  const period = periodOf(keepEvents, 30);
  const periods: Record<PartitionedTable, number> = {
    attempts: period,
    events: period,
    emails: periodOf(keepEmails ?? Number.POSITIVE_INFINITY, 90),
  };
  return [
    { name: 'partitions to come', run: cutAhead({ ...parts, periods }) },
    { name: 'old partitions of attempts', run: dropPast(db, 'attempts', now, old) },
    { name: 'old partitions of events', run: dropPast(db, 'events', now, old) },
    ...oneByOne(() => old() - 2 * period),
    ...emails,
    ...(keepEmails === null
      ? []
      : [{ name: 'empty partitions of emails', run: dropPast(db, 'emails', now, () => null) }]),
  ];
}
