/**
 * Forgets emails, where they are not kept for good: one that is old enough and has nothing more to be sent goes with all
 * that is of it alone, deliveries, messages, attempts, events and returned mail, a few at a time. What counts without it
 * stays: figures, the ledger of credits, suppressions, answers to repeated sends.
 *
 * Who still has something of such an email in hand (a bounce, a click) has locked its delivery, or finds none.
 */
import { isFinal } from '../../record/states.ts';
import { transactionBetween } from '../../vendor/knex.ts';
import { type Db, isPostgres, type Trx } from '../engine/open.ts';
import { lastIdOf } from './retention.ts';

/** Some ten milliseconds, in which SQLite does nothing else. */
const emailsAtOnce = 50;

/** From going through the emails to going through them again: those that wait, held ones, are looked at each time. */
const restMs = 5 * 60_000;

const firstId = '00000000-0000-0000-0000-000000000000';

/** Each call looks at the oldest emails it has not looked at, and answers how many where there are more. */
export function forgetEmails(db: Db, now: () => number, keepMs: number): () => Promise<number> {
  let after = firstId;
  let restUntil = Number.NEGATIVE_INFINITY;
  return async () => {
    if (now() < restUntil) return 0;
    const ids: string[] = await db('emails')
      .where('id', '>', after)
      .where('id', '<=', lastIdOf(now() - keepMs))
      .orderBy('id')
      .limit(emailsAtOnce)
      .pluck('id');
    if (ids.length > 0) await unchecked(db, (trx) => remove(trx, ids));
    const isMore = ids.length === emailsAtOnce;
    after = isMore ? ids.at(-1)! : firstId;
    if (!isMore) restUntil = now() + restMs;
    return isMore ? ids.length : 0;
  };
}

/**
 * With foreign keys, SQLite would scan all messages for those of each email, and all deliveries for those of each message,
 * because the indexes for that are missing, and nothing else needs them. Nothing else uses the connection meanwhile. The
 * pragma takes effect when it is compiled, so it must not be a prepared statement.
 */
async function unchecked(db: Db, change: (trx: Trx) => Promise<void>): Promise<void> {
  if (isPostgres(db)) return db.transaction(change);
  const foreignKeys = (mode: 'on' | 'off') => `pragma foreign_keys = ${mode}`;
  await transactionBetween(db, { before: foreignKeys('off'), after: foreignKeys('on') }, change);
}

async function remove(trx: Trx, ids: string[]): Promise<void> {
  const rows = await trx('deliveries')
    .whereIn('email_id', ids)
    .orderBy('id')
    .forUpdate()
    .select('id', 'email_id', 'message_id', 'status');
  const waiting = new Set(rows.filter(({ status }) => !isFinal(status)).map(({ email_id }) => email_id));
  const gone = rows.filter(({ email_id }) => !waiting.has(email_id));
  const deliveries = gone.map(({ id }) => id);
  const emails = ids.filter((id) => !waiting.has(id));
  const messages = [...new Set(gone.flatMap(({ message_id }) => message_id ?? []))];
  await trx('inbound_mails').whereIn('delivery_id', deliveries).delete();
  await trx('attempts').whereIn('delivery_id', deliveries).delete();
  await trx('events').whereIn('email_id', emails).delete();
  await trx('deliveries').whereIn('id', deliveries).delete();
  await trx('messages').whereIn('id', messages).delete();
  await trx('message_bases').whereIn('email_id', emails).delete();
  await trx('emails').whereIn('id', emails).delete();
}
