/**
 * What a database needs that has come back from a backup, before a server runs on it. The world has gone on since then:
 *
 * - Mail that waited, or was being sent, may have been sent since; nobody can know. It is held, and the operator releases
 *   or cancels it.
 * - Readers of events remember positions that have not been given yet here. New events come after any of them, or those
 *   readers would miss what happens next.
 */
import { type Db, isPostgres } from '../engine/open.ts';
import { applyQueueAction, type QueueActionResult } from '../queue/apply-queue-action.ts';
import { inPool } from '../queue/unfinished-deliveries.ts';

/** More events than there are between a backup and its use. */
const positionGap = 1_000_000_000;

export async function skipPastEvents(db: Db): Promise<void> {
  await db.raw(
    isPostgres(db)
      ? `select setval('events_position_seq', (select last_value from events_position_seq) + ${positionGap})`
      : `update sqlite_sequence set seq = seq + ${positionGap} where name = 'events'`,
  );
}

export interface Holding {
  reason: string;
  now: number;
  onProgress?(held: number): void;
}

/** No server runs. */
export async function holdQueue(db: Db, holding: Holding): Promise<QueueActionResult> {
  // What the servers of that time had in their hands nobody has.
  await db('deliveries')
    .where(inPool('leased'))
    .update({
      status: db.raw("case when attempts = 0 then 'queued' else 'deferred' end"),
      due_at: holding.now,
      lease_owner: null,
    });
  return applyQueueAction(db, {}, { order: 'hold', ...holding });
}
