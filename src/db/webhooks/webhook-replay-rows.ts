/**
 * Tells an endpoint again: one event, all that failed, or what happened in a time. What it was never told of (it was
 * disabled, or new) and wants by its types is told as well. The tries begin anew, and the order of each email holds
 * among what is told again. In pages, each a short transaction; a replay that breaks off can be given again.
 */
import { wants } from '../../webhooks/subscribed-types.ts';
import type { Db, Trx } from '../engine/open.ts';
import { type EventRecord, findEvents } from '../events/read-events.ts';
import { addMessages } from './webhook-feed.ts';
import { orderingKeyOf, promote } from './webhook-outbox.ts';
import { lockWebhooks, type Webhook } from './webhooks.ts';

export type ReplaySelection = { eventId: string } | { failed: true } | { since: number; until: number };

const pageSize = 200;

/** How many messages are to be told (again). What waits for its turn or its next try is due now, and counts. */
export async function replay(
  db: Db,
  webhook: Webhook,
  selection: ReplaySelection,
  now: number,
  signal?: AbortSignal,
): Promise<number> {
  let replayed = 0;
  for await (const ids of pagesOf(db, webhook, selection)) {
    signal?.throwIfAborted();
    replayed += await db.transaction((trx) => replayPage(trx, webhook, ids, now));
  }
  return replayed;
}

/** Ids of events. */
async function* pagesOf(db: Db, webhook: Webhook, selection: ReplaySelection): AsyncGenerator<string[]> {
  if ('eventId' in selection) {
    const event = await db('events').where({ id: selection.eventId, org_id: webhook.orgId }).first('id');
    if (event) yield [event.id];
    return;
  }
  yield* 'failed' in selection
    ? pages((after: string | null) => readFailed(db, webhook, after))
    : pages((after: number | null) => readSpan(db, webhook, selection, after));
}

async function* pages<Place>(read: (after: Place | null) => Promise<Page<Place>>): AsyncGenerator<string[]> {
  for (let after: Place | null = null; ; ) {
    const page: Page<Place> = await read(after);
    if (page.ids.length > 0) yield page.ids;
    if (page.ids.length < pageSize) return;
    after = page.after;
  }
}

interface Page<Place> {
  ids: string[];
  after: Place | null;
}

async function readFailed(db: Db, { id }: Webhook, after: string | null): Promise<Page<string>> {
  const rows = db('webhook_messages')
    .where({ webhook_id: id })
    .whereRaw("status = 'failed'")
    .orderBy('event_id')
    .limit(pageSize);
  if (after !== null) rows.where('event_id', '>', after);
  const ids: string[] = await rows.pluck('event_id');
  return { ids, after: ids.at(-1) ?? null };
}

async function readSpan(
  db: Db,
  { orgId, types }: Webhook,
  { since, until }: { since: number; until: number },
  after: number | null,
): Promise<Page<number>> {
  const query = db('events')
    .where({ org_id: orgId })
    .where('position', '>', after ?? 0)
    .whereBetween('at', [since, until])
    .orderBy('position')
    .limit(pageSize)
    .select('id', 'position');
  if (types.length > 0) query.whereIn('type', types);
  const rows: { id: string; position: number }[] = await query;
  return { ids: rows.map(({ id }) => id), after: rows.at(-1)?.position ?? null };
}

async function replayPage(trx: Trx, webhook: Webhook, ids: string[], now: number): Promise<number> {
  // Their endpoint may have been removed meanwhile.
  if ((await lockWebhooks(trx, [webhook.id])).length === 0) return 0;
  const events = await findEvents(trx, ids);
  const told: string[] = await trx('webhook_messages')
    .where({ webhook_id: webhook.id })
    .whereIn('event_id', ids)
    .pluck('event_id');
  const isTold = new Set(told);
  const again = events.filter(({ id }) => isTold.has(id));
  for (const event of again) await reopen(trx, webhook.id, event, now);
  const lanes = again.map((event) => ({ webhookId: webhook.id, lane: orderingKeyOf(event) }));
  const fresh = events.filter(({ id, type }) => !isTold.has(id) && wants([], type));
  const added = await addMessages(
    trx,
    fresh.map((event) => ({ webhookId: webhook.id, event })),
    now,
  );
  await promote(trx, lanes, now);
  return again.length + added;
}

/** What is leased is being told this moment: it is left alone. */
async function reopen(trx: Trx, webhookId: string, event: EventRecord, now: number): Promise<void> {
  await trx('webhook_messages')
    .where({ webhook_id: webhookId, event_id: event.id })
    .whereNull('lease_owner')
    .update({ status: 'waiting', lane: orderingKeyOf(event), attempts: 0, due_at: null, updated_at: now });
}
