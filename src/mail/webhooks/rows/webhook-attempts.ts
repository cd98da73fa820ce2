/** Webhook messages and attempts, shown to users and deleted when they are old. */

import { deleteOldest } from '#platform/database/engine/delete-old.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { countOf, idList, query } from '#platform/database/engine/json-rows.ts';
import { type Neighbors, readNeighbors } from '#platform/database/engine/neighbors.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { inColumn, number, orNull, records, text, value } from '#platform/database/engine/records.ts';

const attempts = records({
  id: text,
  eventId: text,
  type: text,
  number,
  startedAt: number,
  duration: number,
  url: text,
  status: orNull(number),
  answer: orNull(text),
  error: orNull(text),
});

export type WebhookAttemptRecord = ReturnType<typeof attempts.read>;

/** Lists attempts, the newest first; `after`: those older than that one. */
export async function listWebhookAttempts(
  db: Db,
  webhookId: string,
  { eventId, ...page }: Neighbors & { eventId?: string | undefined },
): Promise<WebhookAttemptRecord[]> {
  const rows = db('webhook_attempts as attempt')
    .join('webhook_messages as message', 'message.id', 'attempt.message_id')
    .where('attempt.webhook_id', webhookId)
    .select('attempt.*', 'message.event_id', 'message.type');
  if (eventId !== undefined) rows.where('message.event_id', eventId);
  return (await readNeighbors(rows, ['attempt.id', 'desc'], page)).map(attempts.read);
}

/** Attempts of all endpoints that began after that one, the oldest first; for a server with few of them. */
export async function listAttemptsAfter(
  db: Db,
  after: string,
  limit: number,
): Promise<WebhookAttemptRecord[]> {
  const rows = db('webhook_attempts as attempt')
    .join('webhook_messages as message', 'message.id', 'attempt.message_id')
    .where('attempt.id', '>', after)
    .orderBy('attempt.id')
    .limit(limit)
    .select('attempt.*', 'message.event_id', 'message.type');
  return (await rows).map(attempts.read);
}

const messages = records({
  /** The event's id: there is one message for an event and endpoint. */
  id: inColumn('event_id', text),
  type: text,
  status: value<'waiting' | 'queued' | 'delivered' | 'failed'>(),
  /** When it is tried next, or, while it is leased, the end of the lease. */
  dueAt: orNull(number),
  leaseOwner: orNull(text),
  createdAt: number,
});

export type WebhookMessageRecord = ReturnType<typeof messages.read>;

/** Lists the messages of an endpoint, those of the newest events first; `after`: those of older events than that one. */
export async function listWebhookMessages(
  db: Db,
  webhookId: string,
  { eventId, failed, ...page }: Neighbors & { eventId?: string | undefined; failed?: boolean },
): Promise<WebhookMessageRecord[]> {
  const rows = db('webhook_messages').where({ webhook_id: webhookId });
  if (eventId !== undefined) rows.where({ event_id: eventId });
  if (failed) rows.whereRaw("status = 'failed'");
  return (await readNeighbors(rows, ['event_id', 'desc'], page)).map(messages.read);
}

/** The newest attempts of some events, the newest first. */
export async function listAttemptsOf(
  db: Db,
  webhookId: string,
  eventIds: readonly string[],
  limit: number,
): Promise<WebhookAttemptRecord[]> {
  const rows = db('webhook_messages as message')
    .join('webhook_attempts as attempt', 'attempt.message_id', 'message.id')
    .where('message.webhook_id', webhookId)
    .whereIn('message.event_id', eventIds)
    .orderBy('attempt.id', 'desc')
    .limit(limit)
    .select('attempt.*', 'message.event_id', 'message.type');
  return (await rows).map(attempts.read);
}

/** `open`: messages that wait for an earlier message, their next try, or the endpoint to be enabled. */
export async function countMessages(db: Db, webhookId: string): Promise<{ open: number; failed: number }> {
  const count = (condition: string) =>
    countOf(db('webhook_messages').where({ webhook_id: webhookId }).whereRaw(condition));
  return { open: await count('lane is not null'), failed: await count("status = 'failed'") };
}

/** Inserts a test: its event, the message in its final state, and the attempt. */
export async function insertTried(
  db: Db,
  rows: { event: object; message: object; attempt: object },
): Promise<void> {
  await db.transaction(async (trx) => {
    await insertRows(trx, 'events', [rows.event]);
    await insertRows(trx, 'webhook_messages', [rows.message]);
    await insertRows(trx, 'webhook_attempts', [rows.attempt]);
  });
}

const maxForgotten = 500;

/** Deletes attempts from before `until`; returns how many. */
export const forgetWebhookAttempts = (db: Db, until: number) =>
  deleteOldest(db, { table: 'webhook_attempts', key: 'id', time: 'started_at' }, until);

/** Deletes messages from before `until` that have no attempt left: delivered, failed, or never tried. */
export async function forgetWebhookMessages(db: Db, until: number): Promise<number> {
  return db.transaction((trx) => forgetSome(trx, until));
}

async function forgetSome(trx: Trx, until: number): Promise<number> {
  const ids: string[] = await trx('webhook_messages')
    .where('created_at', '<', until)
    // A message that was replayed recently waits for its try.
    .where('updated_at', '<', until)
    .whereNotExists((attempt) =>
      attempt
        .from('webhook_attempts')
        .whereRaw('webhook_attempts.message_id = webhook_messages.id')
        .select('id'),
    )
    .orderBy('created_at')
    .limit(maxForgotten)
    .pluck('id');
  if (ids.length === 0) return 0;
  const { select, value } = idList(trx, ids);
  await query(trx, `delete from webhook_messages where id in (${select})`, [value]);
  return ids.length;
}
