/**
 * Deletes old emails, unless they are kept forever. An email that is old enough and has nothing left to send is deleted with
 * its deliveries, messages, attempts, events and returned mail, a few emails at a time. Statistics, the credit ledger,
 * suppressions and answers to repeated sends stay.
 *
 * A bounce or click that is recorded at the same time has locked its delivery, or does not find it.
 */

import type { Db, Trx } from '#platform/database/engine/open.ts';
import { withoutForeignKeys } from '#platform/database/engine/without-foreign-keys.ts';
import { firstId } from '#platform/database/tables/time-of-id.ts';
import { isFinal } from '#platform/values/states.ts';
import { scanEmails } from './scan-emails.ts';

/** Takes some 10 ms, during which SQLite does nothing else. */
const emailsAtOnce = 50;

/**
 * Each call checks the next emails and returns how many; 0 at the end of a scan. A scan also reads the emails that are still
 * waiting or held.
 */
export function forgetEmails(db: Db, now: () => number, keepMs: number): () => Promise<number> {
  return scanEmails({
    now,
    latest: () => now() - keepMs,
    pageSize: emailsAtOnce,
    readPage: (after, last) =>
      db('emails')
        .where('id', '>', after)
        .where('id', '<=', last)
        .orderBy('id')
        .limit(emailsAtOnce)
        .pluck('id'),
    handle: (ids) => withoutForeignKeys(db, async (trx) => void (await removeFinished(trx, ids))),
  });
}

async function removeFinished(trx: Trx, ids: string[]): Promise<number> {
  const rows = await trx('deliveries')
    .whereIn('email_id', ids)
    .orderBy('id')
    .forUpdate()
    .select('id', 'email_id', 'message_id', 'status');
  const waiting = new Set(rows.filter(({ status }) => !isFinal(status)).map(({ email_id }) => email_id));
  const finished = rows.filter(({ email_id }) => !waiting.has(email_id));
  const emails = ids.filter((id) => !waiting.has(id));
  await removeRows(trx, emails, finished);
  return emails.length;
}

/** Deletes the organization's test mail that is finished, up to `max` of them; returns how many. */
export async function deleteTestMail(db: Db, orgId: string, max: number): Promise<number> {
  let deleted = 0;
  let last = firstId;
  while (deleted < max) {
    const ids: string[] = await db('emails')
      .where({ org_id: orgId })
      .whereRaw('is_test')
      .where('id', '>', last)
      .orderBy('id')
      .limit(emailsAtOnce)
      .pluck('id');
    if (ids.length === 0) break;
    await withoutForeignKeys(db, async (trx) => {
      deleted += await removeFinished(trx, ids);
    });
    last = ids.at(-1)!;
  }
  return deleted;
}

/** Deletes emails in whatever state they are; none of them is being sent. */
export function deleteEmails(db: Db, ids: string[]): Promise<void> {
  return withoutForeignKeys(db, async (trx) => {
    const rows = await trx('deliveries')
      .whereIn('email_id', ids)
      .orderBy('id')
      .forUpdate()
      .select('id', 'message_id');
    await removeRows(trx, ids, rows);
  });
}

async function removeRows(
  trx: Trx,
  emails: string[],
  rows: { id: string; message_id: string | null }[],
): Promise<void> {
  const deliveries = rows.map(({ id }) => id);
  const messages = [...new Set(rows.flatMap(({ message_id }) => message_id ?? []))];
  await trx('inbound_mails').whereIn('delivery_id', deliveries).delete();
  await trx('attempts').whereIn('delivery_id', deliveries).delete();
  await trx('events').whereIn('email_id', emails).delete();
  await trx('deliveries').whereIn('id', deliveries).delete();
  await trx('messages').whereIn('id', messages).delete();
  await trx('message_bases').whereIn('email_id', emails).delete();
  await trx('emails').whereIn('id', emails).delete();
}
