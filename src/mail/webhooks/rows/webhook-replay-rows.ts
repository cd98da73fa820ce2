/**
 * Replays events to an endpoint: one event, all failed ones, or those of a time span. Events that it never got (it was disabled
 * or did not exist) and that match its types are included. The tries start again from the first, and the replayed events of an
 * email keep their order. Works in pages, each a short transaction; an interrupted replay can be repeated.
 */

import { type EventRecord, findEvents } from '#mail/record/rows/read-events.ts';
import { isFor } from '#mail/webhooks/subscribed-types.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { addMessages } from './webhook-feed.ts';
import { orderingKeyOf, promote } from './webhook-outbox.ts';
import { lockWebhooks, type Webhook } from './webhooks.ts';

export type ReplaySelection = { eventId: string } | { failed: true } | { since: number; until: number };

const pageSize = 200;

/** Returns how many messages are to be sent, including those that already wait, which become due now. */
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

/** Yields ids of events. */
async function* pagesOf(db: Db, webhook: Webhook, selection: ReplaySelection): AsyncGenerator<string[]> {
  if ('eventId' in selection) {
    const event = await db('events').where({ id: selection.eventId, org_id: webhook.orgId }).first('id');
    if (event) yield [event.id];
    return;
  }
  yield* 'failed' in selection
    ? pages((after: string | null) => readFailed(db, webhook, after))
    : pages((after: number | null) => readTimeSpan(db, webhook, selection, after));
}

async function* pages<Position>(
  read: (after: Position | null) => Promise<Page<Position>>,
): AsyncGenerator<string[]> {
  for (let after: Position | null = null; ; ) {
    const page: Page<Position> = await read(after);
    if (page.ids.length > 0) yield page.ids;
    if (page.ids.length < pageSize) return;
    after = page.after;
  }
}

interface Page<Position> {
  ids: string[];
  after: Position | null;
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

async function readTimeSpan(
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
  // The endpoint may have been deleted meanwhile.
  if ((await lockWebhooks(trx, [webhook.id])).length === 0) return 0;
  const events = await findEvents(trx, ids);
  const known: string[] = await trx('webhook_messages')
    .where({ webhook_id: webhook.id })
    .whereIn('event_id', ids)
    .pluck('event_id');
  const isKnown = new Set(known);
  const again = events.filter(({ id }) => isKnown.has(id));
  for (const event of again) await reopen(trx, webhook.id, event, now);
  const keys = again.map((event) => ({ webhookId: webhook.id, orderingKey: orderingKeyOf(event) }));
  const fresh = events.filter((event) => !isKnown.has(event.id) && isFor({ ...webhook, types: [] }, event));
  const added = await addMessages(
    trx,
    fresh.map((event) => ({ webhookId: webhook.id, event })),
    now,
  );
  await promote(trx, keys, now);
  return again.length + added;
}

/** A leased message is being sent now, and stays as it is. */
async function reopen(trx: Trx, webhookId: string, event: EventRecord, now: number): Promise<void> {
  await trx('webhook_messages')
    .where({ webhook_id: webhookId, event_id: event.id })
    .whereNull('lease_owner')
    .update({ status: 'waiting', lane: orderingKeyOf(event), attempts: 0, due_at: null, updated_at: now });
}
