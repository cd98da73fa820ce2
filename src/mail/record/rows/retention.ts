/**
 * Deletes old messages, a bounded number per call in a short transaction. A partial index lists the messages that have bytes
 * by email, whose id contains its time; the others are left from older versions, which emptied them. Old attempts and events
 * are deleted by delete-old.ts, emails and deliveries by forget-emails.ts, the answers to repeated sends by
 * mail/accept/rows/idempotency.ts.
 *
 * SQLite reuses freed pages: the file stops growing, but does not shrink.
 */

import { deleteOldest } from '#platform/database/engine/delete-old.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { withoutForeignKeys } from '#platform/database/engine/without-foreign-keys.ts';
import { isFinal } from '#platform/values/states.ts';
import { scanEmails } from './scan-emails.ts';

const emailsAtOnce = 200;

/** Deletes events from before `until`; returns how many. */
export const forgetEvents = (db: Db, until: number) =>
  deleteOldest(db, { table: 'events', key: 'position', time: 'at' }, until);

export const forgetAttempts = (db: Db, until: number) =>
  deleteOldest(db, { table: 'attempts', key: 'id', time: 'ended_at' }, until);

/**
 * Deletes the messages whose last delivery has been final for `keepMs`. Each call checks the next emails that have bytes;
 * it returns how many, or 0 at the end of a scan.
 */
export function removeMessages(db: Db, now: () => number, keepMs: number): () => Promise<number> {
  const latest = () => now() - keepMs;
  return scanEmails({
    now,
    latest,
    pageSize: emailsAtOnce,
    readPage: (after, last) =>
      db('messages')
        .whereRaw('size > 0')
        .where('email_id', '>', after)
        .where('email_id', '<=', last)
        .distinct()
        .orderBy('email_id')
        .limit(emailsAtOnce)
        .pluck('email_id'),
    async handle(ids) {
      const done = await doneBy(db, ids, latest());
      if (done.length > 0) await withoutForeignKeys(db, (trx) => remove(trx, done));
    },
  });
}

/** The emails without a delivery that could still be sent. A final state never changes. */
async function doneBy(db: Db, ids: string[], latest: number): Promise<string[]> {
  const rows = await db('deliveries').whereIn('email_id', ids).select('email_id', 'status', 'updated_at');
  const waiting = new Set(
    rows
      .filter(({ status, updated_at }) => !isFinal(status) || updated_at > latest)
      .map(({ email_id }) => email_id),
  );
  return ids.filter((id) => !waiting.has(id));
}

/** The deliveries still have the message's id, which tells those that had a copy of their own from those that were never queued. */
async function remove(trx: Trx, ids: string[]): Promise<void> {
  // Not a bound value: SQLite uses the partial index only if it knows the condition when it compiles the statement.
  await trx('messages').whereIn('email_id', ids).whereRaw('size > 0').delete();
  await trx('message_bases').whereIn('email_id', ids).delete();
}
