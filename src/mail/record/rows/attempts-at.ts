/** Lists the latest attempts at a destination, for a trace. */
import type { Db } from '#platform/database/engine/open.ts';
import { attemptMx } from '#platform/database/tables/packed-records.ts';
import { lastIdOf } from '#platform/database/tables/time-of-id.ts';
import { type AttemptRecord, attemptFrom } from './emails.ts';

export interface TracedAttempt {
  id: string;
  emailId: string;
  recipient: string;
  attempt: AttemptRecord;
}

/** Attempts that are looked at, and attempts that are read with their transcripts. */
const maxLookedAt = 10_000;
const maxRead = 500;

/** Attempts since a time that `isWanted`, the oldest first; if there are more than `maxRead`, the last. */
export async function listAttemptsWhere(
  db: Db,
  since: number,
  isWanted: (domain: string, host: string | null) => boolean,
): Promise<TracedAttempt[]> {
  const all = () =>
    db('attempts').join('deliveries', 'deliveries.id', 'attempts.delivery_id').orderBy('attempts.id', 'desc');
  const latest = await all()
    .where('attempts.id', '>', lastIdOf(since))
    .limit(maxLookedAt)
    .select('attempts.id', 'attempts.mx', 'attempts.packed', 'deliveries.domain');
  const ids = latest.filter((row) => isWanted(row.domain, attemptMx(row)?.host ?? null)).map(({ id }) => id);
  if (ids.length === 0) return [];
  const rows = await all()
    .whereIn('attempts.id', ids.slice(0, maxRead))
    .select('attempts.*', 'deliveries.email_id', 'deliveries.recipient');
  return rows
    .map((row) => ({
      id: row.id,
      emailId: row.email_id,
      recipient: row.recipient,
      attempt: attemptFrom(row),
    }))
    .reverse();
}
