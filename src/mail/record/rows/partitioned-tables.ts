/**
 * The maintenance jobs of the tables that grow with every mail. SQLite deletes old rows in batches. On PostgreSQL, partitions
 * are created ahead and dropped when all their rows are old; rows that would wait too long for that (in a partition that
 * filled slowly, or into which `postern move` copied all) are deleted.
 *
 * A partition spans one eighth of the retention time, at least a day and at most a month, so rows are kept at most a quarter
 * longer than configured, or two days. Emails are referred to by tables without partitions, so they are deleted row by row
 * on both databases, together with those rows; empty partitions are dropped afterwards.
 */

import { forgetEmails } from '#mail/record/rows/forget-emails.ts';
import { forgetAttempts, forgetEvents } from '#mail/record/rows/retention.ts';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import type { MaintenanceJob } from '#platform/database/schema/maintenance-job.ts';
import type { PartitionedTable } from '#platform/database/schema/partitions.ts';
import { createAhead } from '#platform/database/schema/partitions-ahead.ts';
import { dropPast } from './partitions-past.ts';

export interface PartitionedTablesParts {
  db: Db;
  openWithoutTimeout(): Promise<Db>;
  now(): number;
  keepEvents: number;
  /** Null: forever. */
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
    { name: 'attempts', isFedByMail: true, isByAge: true, run: () => forgetAttempts(db, until()) },
    { name: 'events', isFedByMail: true, isByAge: true, run: () => forgetEvents(db, until()) },
  ];
  const emails =
    keepEmails === null ? [] : [{ name: 'emails', run: forgetEmails(db, now, keepEmails), isByAge: true }];
  if (!isPostgres(db)) return [...oneByOne(old), ...emails];
  const period = periodOf(keepEvents, 30);
  const periods: Record<PartitionedTable, number> = {
    attempts: period,
    events: period,
    emails: periodOf(keepEmails ?? Number.POSITIVE_INFINITY, 90),
  };
  return [
    { name: 'partitions to come', run: createAhead({ ...parts, periods }) },
    { name: 'old partitions of attempts', run: dropPast(db, 'attempts', now, old), isByAge: true },
    { name: 'old partitions of events', run: dropPast(db, 'events', now, old), isByAge: true },
    ...oneByOne(() => old() - 2 * period),
    ...emails,
    ...(keepEmails === null
      ? []
      : [{ name: 'empty partitions of emails', run: dropPast(db, 'emails', now, () => null) }]),
  ];
}
