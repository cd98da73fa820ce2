/**
 * Deletes old attempts and events, and empties old messages; a bounded number per call, each in a short transaction.
 * Emails and deliveries are removed by forget-emails.ts, the answers to repeated sends by db/accept/idempotency.ts.
 *
 * Needs no index on a time: attempts and events are inserted in the order of their ids and positions, so the oldest come
 * first. A partial index lists the messages that still have bytes by email, whose id contains its time (UUID version 7).
 *
 * SQLite reuses freed pages: the file stops growing, but does not shrink.
 */
import { isFinal } from '../../record/states.ts';
import type { Db, Trx } from '../engine/open.ts';

const eventsAtOnce = 500;
const attemptsAtOnce = 500;
const emailsAtOnce = 200;

/** Deletes events from before `until`; returns how many. */
export async function forgetEvents(db: Db, until: number): Promise<number> {
  const oldest = await db('events').orderBy('position').limit(eventsAtOnce).select('position', 'at');
  const old = oldest.filter(({ at }) => at < until).map(({ position }) => position);
  return old.length === 0 ? 0 : db('events').whereIn('position', old).delete();
}

export async function forgetAttempts(db: Db, until: number): Promise<number> {
  const oldest = await db('attempts').orderBy('id').limit(attemptsAtOnce).select('id', 'ended_at');
  const old = oldest.filter(({ ended_at }) => ended_at < until).map(({ id }) => id);
  return old.length === 0 ? 0 : db('attempts').whereIn('id', old).delete();
}

/** Pause between two scans of the messages, because each scan reads those that have to stay again. */
const restMs = 5 * 60_000;

/**
 * Empties the messages whose last delivery has been final for `keepMs`. Each call checks the next emails that have bytes;
 * it returns how many, or 0 at the end of a scan.
 */
export function removeMessages(db: Db, now: () => number, keepMs: number): () => Promise<number> {
  let after = firstId;
  let restUntil = Number.NEGATIVE_INFINITY;
  return async () => {
    const latest = now() - keepMs;
    if (now() < restUntil) return 0;
    const rows: { email_id: string }[] = await db('messages')
      .whereRaw('size > 0')
      .where('email_id', '>', after)
      .where('email_id', '<=', lastIdOf(latest))
      .distinct('email_id')
      .orderBy('email_id')
      .limit(emailsAtOnce);
    const ids = rows.map(({ email_id }) => email_id);
    const done = await doneBy(db, ids, latest);
    if (done.length > 0) await db.transaction((trx) => empty(trx, done));
    const isMore = ids.length === emailsAtOnce;
    after = isMore ? ids.at(-1)! : firstId;
    if (!isMore) restUntil = now() + restMs;
    return isMore ? ids.length : 0;
  };
}

/** The emails without a delivery that could still be sent. A final state never changes. */
async function doneBy(db: Db, ids: string[], latest: number): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db('deliveries').whereIn('email_id', ids).select('email_id', 'status', 'updated_at');
  const waiting = new Set(
    rows
      .filter(({ status, updated_at }) => !isFinal(status) || updated_at > latest)
      .map(({ email_id }) => email_id),
  );
  return ids.filter((id) => !waiting.has(id));
}

/** Keeps the row, because deliveries refer to it; deleting it would need an index to find them. */
async function empty(trx: Trx, ids: string[]): Promise<void> {
  await trx('messages')
    .whereIn('email_id', ids)
    .where('size', '>', 0)
    .update({ size: 0, raw: Buffer.alloc(0) });
  await trx('message_bases').whereIn('email_id', ids).delete();
}

const firstId = '00000000-0000-0000-0000-000000000000';

/** The greatest UUID version 7 of a millisecond (RFC 9562 section 5.7). */
export function lastIdOf(time: number): string {
  const digits = Math.max(time, 0).toString(16).padStart(12, '0').slice(0, 12);
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7fff-bfff-ffffffffffff`;
}
