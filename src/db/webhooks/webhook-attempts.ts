/** What was tried: read by people, and forgotten in the end. */

import { insertRows } from '../engine/insert-rows.ts';
import { jsonRows, query } from '../engine/json-rows.ts';
import type { Db, Trx } from '../engine/open.ts';

export interface WebhookAttemptRecord {
  id: string;
  eventId: string;
  type: string;
  number: number;
  startedAt: number;
  duration: number;
  url: string;
  status: number | null;
  answer: string | null;
  error: string | null;
}

/** The newest first; `after`: those older than that one. */
export async function listWebhookAttempts(
  db: Db,
  webhookId: string,
  { limit, eventId, after }: { limit: number; eventId?: string | undefined; after?: string | undefined },
): Promise<WebhookAttemptRecord[]> {
  const rows = db('webhook_attempts as attempt')
    .join('webhook_messages as message', 'message.id', 'attempt.message_id')
    .where('attempt.webhook_id', webhookId)
    .orderBy('attempt.id', 'desc')
    .limit(limit)
    .select('attempt.*', 'message.event_id', 'message.type');
  if (eventId !== undefined) rows.where('message.event_id', eventId);
  if (after !== undefined) rows.where('attempt.id', '<', after);
  return (await rows).map((row) => ({
    id: row.id,
    eventId: row.event_id,
    type: row.type,
    number: row.number,
    startedAt: row.started_at,
    duration: row.duration,
    url: row.url,
    status: row.status,
    answer: row.answer,
    error: row.error,
  }));
}

export interface MessageCounts {
  /** To be told: waiting for their turn, their next try, or for the endpoint to be enabled. */
  open: number;
  failed: number;
}

export async function countMessages(db: Db, webhookId: string): Promise<MessageCounts> {
  const count = async (condition: string) => {
    const [row] = await db('webhook_messages')
      .where({ webhook_id: webhookId })
      .whereRaw(condition)
      .count('* as count');
    return Number(row!.count);
  };
  return { open: await count('lane is not null'), failed: await count("status = 'failed'") };
}

/** What is tried once, at somebody's word: its event, the message in its final state, and the attempt. */
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

/** Attempts from before `until`; answers how many were forgotten. They are made in the order of their ids. */
export async function forgetWebhookAttempts(db: Db, until: number): Promise<number> {
  const oldest = await db('webhook_attempts').orderBy('id').limit(maxForgotten).select('id', 'started_at');
  const old = oldest.filter(({ started_at }) => started_at < until).map(({ id }) => id);
  return old.length === 0 ? 0 : db('webhook_attempts').whereIn('id', old).delete();
}

/** Messages from before then that have no attempt left: delivered, given up, or never wanted by their endpoint. */
export async function forgetWebhookMessages(db: Db, until: number): Promise<number> {
  return db.transaction((trx) => forgetSome(trx, until));
}

async function forgetSome(trx: Trx, until: number): Promise<number> {
  const ids: string[] = await trx('webhook_messages')
    .where('created_at', '<', until)
    // One that was replayed lately waits to be tried.
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
  const { from, column } = jsonRows(trx, { id: 'uuid' });
  await query(trx, `delete from webhook_messages where id in (select ${column('id')} from ${from})`, [
    JSON.stringify(ids.map((id) => ({ id }))),
  ]);
  return ids.length;
}
