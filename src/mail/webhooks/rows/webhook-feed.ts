/**
 * Turns events into webhook messages: a row of the outbox for each endpoint that wants the event, in one transaction with the
 * reader's new position. So each endpoint gets each event once, also after a crash, and the code that adds events does not
 * know about webhooks. The reader's row is the lock: one node reads at a time.
 */

import { type EventRecord, readEvents } from '#mail/record/rows/read-events.ts';
import { isFor } from '#mail/webhooks/subscribed-types.ts';
import { newId } from '#platform/base/id.ts';
import { insertOf } from '#platform/database/engine/insert-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { orderingKeyOf, promote } from './webhook-outbox.ts';
import { lockWebhooks } from './webhooks.ts';

const reader = { name: 'webhooks' };

/** Handles at most `limit` new events. Returns the position that it reached, and whether there are more. */
export async function fanOut(
  db: Db,
  { now, limit }: { now: number; limit: number },
): Promise<{ made: number; position: number; isMore: boolean }> {
  return db.transaction(async (trx) => {
    const row = await trx('event_readers').where(reader).forUpdate().first();
    const page = await readEvents(trx, { orgId: null, after: row.position, limit });
    const made = await makeMessages(trx, page.events, now);
    if (page.position > row.position)
      await trx('event_readers').where(reader).update({ position: page.position });
    return { made, position: page.position, isMore: page.isMore };
  });
}

/** Skips events while there is no active endpoint. */
export async function passOver(db: Db, position: number): Promise<void> {
  await db('event_readers').where(reader).where('position', '<', position).update({ position });
}

async function makeMessages(trx: Trx, events: EventRecord[], now: number): Promise<number> {
  const orgs = [...new Set(events.map(({ orgId }) => orgId))];
  if (orgs.length === 0) return 0;
  const endpoints = await trx('webhooks')
    .whereIn('org_id', orgs)
    .whereRaw("status = 'active'")
    .select('id', 'org_id', 'types', 'format', 'after_position');
  const wanted = endpoints.map((row) => ({ ...row, types: JSON.parse(row.types) }));
  const messages = events.flatMap((event) =>
    wanted
      .filter((endpoint) => endpoint.org_id === event.orgId && isFor(endpoint, event))
      .filter(({ after_position }) => event.position > after_position)
      .map(({ id }) => ({ webhookId: id as string, event })),
  );
  return addMessages(trx, messages, now);
}

export interface NewMessage {
  webhookId: string;
  event: Pick<EventRecord, 'id' | 'type' | 'position'> & { email: { id: string } | null };
}

/** Adds messages that do not exist yet, and returns how many. The first message of each ordering key becomes due. */
export async function addMessages(trx: Trx, messages: NewMessage[], now: number): Promise<number> {
  const webhookIds = messages.map(({ webhookId }) => webhookId);
  const kept = new Set((await lockWebhooks(trx, webhookIds)).map(({ id }) => id));
  const rows = messages
    .filter(({ webhookId }) => kept.has(webhookId))
    .map(({ webhookId, event }) => ({
      id: newId(),
      webhook_id: webhookId,
      event_id: event.id,
      type: event.type,
      position: event.position,
      lane: orderingKeyOf(event),
      status: 'waiting',
      created_at: now,
      updated_at: now,
    }));
  if (rows.length === 0) return 0;
  const [insert, values] = insertOf(trx, 'webhook_messages', rows);
  // Without "where true", SQLite parses `on` as a join condition. A replay may have added the message before.
  const added = await trx.raw(`${insert} where true on conflict do nothing returning id`, values);
  await promote(
    trx,
    rows.map(({ webhook_id, lane }) => ({ webhookId: webhook_id, orderingKey: lane })),
    now,
  );
  return (isPostgres(trx) ? added.rows : added).length;
}
