/**
 * Prepares a database that was restored from a backup, before a server runs on it:
 *
 * - Mail that waited or was being sent may have been sent since the backup. It is held, and the operator releases or cancels it.
 * - Readers of events remember positions that do not exist here yet. New events come after all of these, so that the readers
 *   do not miss them.
 */

import { applyQueueAction, type QueueActionResult } from '#mail/queue/rows/apply-queue-action.ts';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';

/** More than the number of events between a backup and its use. */
const positionGap = 1_000_000_000;

export async function skipPastEvents(db: Db): Promise<void> {
  await db.raw(
    isPostgres(db)
      ? `select setval('events_position_seq', (select last_value from events_position_seq) + ${positionGap})`
      : `update sqlite_sequence set seq = seq + ${positionGap} where name = 'events'`,
  );
}

export interface HoldOptions {
  reason: string;
  now: number;
  onProgress?(held: number): void;
}

/** Must be called while no server runs. */
export async function holdQueue(db: Db, options: HoldOptions): Promise<QueueActionResult> {
  // The leases are from before the backup, so no server has these deliveries.
  await db('deliveries')
    .where(inStage('leased'))
    .update({
      status: db.raw("case when attempts = 0 then 'queued' else 'deferred' end"),
      due_at: options.now,
      lease_owner: null,
    });
  return applyQueueAction(db, {}, { action: 'hold', ...options });
}
