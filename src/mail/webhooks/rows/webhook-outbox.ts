/**
 * The webhook outbox: leases due messages, releases leases. A message is one event for one endpoint.
 *
 *   waiting    an earlier message with the same ordering key is open; no `due_at`
 *   queued     tried when `due_at` has come; while a node tries it, it is leased and `due_at` is the end of the lease
 *   delivered  accepted by the endpoint; final
 *   failed     given up after the last try; final until it is replayed
 *
 * The ordering key (column `lane`) is the email: of each endpoint and key, at most one message is queued, the earliest, so
 * the events of an email arrive in order even if one has to be retried. Different keys do not wait for each other.
 *
 * An expired lease is due like any other message, because a receiver must tolerate duplicates anyway. On PostgreSQL any
 * number of nodes claim in parallel (SKIP LOCKED).
 */

import { type EventRecord, findEvents } from '#mail/record/rows/read-events.ts';
import { secretsOf } from '#mail/webhooks/endpoint-secrets.ts';
import { jsonRows, query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { inColumn, number, records, text } from '#platform/database/engine/records.ts';
import { webhooks } from './webhooks.ts';

const ofMessage = records({
  id: text,
  webhookId: text,
  eventId: text,
  orderingKey: inColumn('lane', text),
  /** Tries made before this one. */
  attempts: number,
});
const ofEndpoint = webhooks.pick('url', 'format');
const sealed = webhooks.pick('secret', 'oldSecret', 'oldSecretUntil');

export type WebhookMessage = ReturnType<typeof ofMessage.read> &
  ReturnType<typeof ofEndpoint.read> & {
    /** Sealed, the newest first. */
    secrets: string[];
    /** Null if it has been deleted. */
    event: EventRecord | null;
  };

export function orderingKeyOf({ id, email }: { id: string; email: { id: string } | null }): string {
  return email?.id ?? id;
}

/** Lists active endpoints with due messages: one index seek for each endpoint, however many messages are open. */
export async function listDueWebhooks(db: Db, now: number): Promise<{ id: string; isFailing: boolean }[]> {
  const next = (after: string) =>
    `select webhook_id from webhook_messages where due_at is not null ${after} order by webhook_id limit 1`;
  const rows = await query<{ id: string; failing_since: number | null }>(
    db,
    `with recursive open(webhook_id) as (
       select (${next('')})
       union all
       select (${next('and webhook_id > open.webhook_id')}) from open where open.webhook_id is not null
     ) select webhooks.id, failing_since from open join webhooks on webhooks.id = open.webhook_id
     where status = 'active' and (paused_until is null or paused_until <= ?)
       and exists (select 1 from webhook_messages where webhook_id = webhooks.id and due_at <= ?)`,
    [now, now],
  );
  return rows.map(({ id, failing_since }) => ({ id, isFailing: failing_since !== null }));
}

/** When the next message of an active endpoint is due, which may have passed; infinite if there is none. */
export async function nextDueMessageAt(db: Db): Promise<number> {
  const rows: { paused_until: number | null; due_at: number | null }[] = await db('webhooks')
    .where({ status: 'active' })
    .select('paused_until')
    .select(
      db.raw(
        '(select due_at from webhook_messages where webhook_id = webhooks.id and due_at is not null order by due_at limit 1) as due_at',
      ),
    );
  const times = rows.map(({ paused_until, due_at }) =>
    due_at === null ? Number.POSITIVE_INFINITY : Math.max(paused_until ?? 0, due_at),
  );
  return times.reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY);
}

export interface Claim {
  node: string;
  now: number;
  leaseMs: number;
  picks: { webhookId: string; limit: number }[];
}

/** Leases at most `limit` messages of each endpoint, the longest due first. */
export async function claimMessages(db: Db, { node, now, leaseMs, picks }: Claim): Promise<WebhookMessage[]> {
  const ids = await db.transaction(async (trx) => {
    const found: string[] = [];
    for (const { webhookId, limit } of picks) {
      const due = trx('webhook_messages')
        .where({ webhook_id: webhookId })
        .where('due_at', '<=', now)
        .orderBy(['due_at', 'position'])
        .limit(limit)
        .select('id');
      const rows: { id: string }[] = await (isPostgres(trx) ? due.forUpdate().skipLocked() : due);
      found.push(...rows.map(({ id }) => id));
    }
    await trx('webhook_messages')
      .whereIn('id', found)
      .update({ lease_owner: node, due_at: now + leaseMs, updated_at: now });
    return found;
  });
  return readMessages(db, ids, now);
}

async function readMessages(db: Db, ids: string[], now: number): Promise<WebhookMessage[]> {
  const rows = await db('webhook_messages as message')
    .join('webhooks as endpoint', 'endpoint.id', 'message.webhook_id')
    .whereIn('message.id', ids)
    .select('message.*', ...ofEndpoint.columnsOf('endpoint'), ...sealed.columnsOf('endpoint'));
  const positions = rows.map((row) => row.position as number);
  const events = await findEvents(
    db,
    rows.map((row) => row.event_id),
    // The position of a test is unknown, because it was sent before its event was added.
    positions.includes(0) ? [] : positions,
  );
  const byId = new Map(events.map((event) => [event.id, event]));
  return rows.map((row) => ({
    ...ofMessage.read(row),
    ...ofEndpoint.read(row),
    secrets: secretsOf(sealed.read(row), now),
    event: byId.get(row.event_id) ?? null,
  }));
}

/** Makes all messages that this node has leased due again: it does not try any now. */
export async function releaseMessages(db: Db, { node, now }: { node: string; now: number }): Promise<void> {
  await db('webhook_messages').where({ lease_owner: node }).update({ lease_owner: null, due_at: now });
}

/** Makes the earliest message of each ordering key due, unless one already is. The caller has locked the endpoints. */
export async function promote(
  trx: Trx,
  keys: { webhookId: string; orderingKey: string }[],
  now: number,
): Promise<void> {
  if (keys.length === 0) return;
  const { from, column } = jsonRows(trx, { webhook_id: 'uuid', lane: 'uuid' });
  const rows = new Map(
    keys.map(({ webhookId, orderingKey: lane }) => [`${webhookId} ${lane}`, { webhook_id: webhookId, lane }]),
  );
  await query(
    trx,
    `update webhook_messages set status = 'queued', due_at = ? where status = 'waiting' and id in (
       select (select id from webhook_messages as first
               where first.webhook_id = ${column('webhook_id')} and first.lane = ${column('lane')}
               order by position limit 1)
       from ${from})`,
    [now, JSON.stringify([...rows.values()])],
  );
}

const pageSize = 1000;

/**
 * Makes all messages due and ends all pauses, in pages so that other writers have their turn. Called when the clock is set
 * back.
 */
export async function makeMessagesDue(db: Db, now: number, signal: AbortSignal): Promise<void> {
  await db('webhooks').where('paused_until', '>', now).update({ paused_until: null });
  for (const id of await db('webhooks').pluck('id')) {
    for (let made = pageSize; made === pageSize; ) {
      signal.throwIfAborted();
      const later = db('webhook_messages')
        .where({ webhook_id: id })
        .where('due_at', '>', now)
        .whereNull('lease_owner')
        .limit(pageSize)
        .select('id');
      made = await db('webhook_messages')
        .whereIn('id', later)
        .whereNull('lease_owner')
        .update({ due_at: now });
    }
  }
}
