/**
 * What is kept for a while and then goes: the bytes of messages, attempts, events. A little at a time, each a short
 * transaction of its own. Emails and deliveries stay, and with them each status, the number of attempts, opens and
 * clicks; so do the answers that repeated sends get.
 *
 * Nothing here needs an index on a time. Attempts and events are made in the order of their ids and positions, so what
 * is old is at the beginning; and the messages that still have bytes are found by an index of those alone, by their
 * email, whose id tells when it was made (UUID version 7).
 *
 * SQLite keeps freed pages and uses them again: the file does not shrink, and stops growing.
 */
import { isFinal } from '../../record/states.ts';
import type { Db, Trx } from '../engine/open.ts';

const eventsAtOnce = 500;
const attemptsAtOnce = 500;
const emailsAtOnce = 200;

/** How many events from before `until` it has deleted. */
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

/** From going through the messages to going through them again: those that have to wait are looked at each time. */
const restMs = 5 * 60_000;

/**
 * Empties the messages whose last delivery has been final for `keepMs`. Each call looks at the next emails that have
 * bytes, and answers how many where there are more.
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

/** Those of the emails of which nothing is to be sent any more. What is final never is again. */
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

/** The row stays: deliveries refer to it, and to look for those of each would take an index of its own. */
async function empty(trx: Trx, ids: string[]): Promise<void> {
  await trx('messages')
    .whereIn('email_id', ids)
    .where('size', '>', 0)
    .update({ size: 0, raw: Buffer.alloc(0) });
  await trx('message_bases').whereIn('email_id', ids).delete();
}

const firstId = '00000000-0000-0000-0000-000000000000';

/** The greatest UUID of version 7 of a millisecond (RFC 9562 section 5.7). */
export function lastIdOf(time: number): string {
  const digits = Math.max(time, 0).toString(16).padStart(12, '0').slice(0, 12);
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7fff-bfff-ffffffffffff`;
}
