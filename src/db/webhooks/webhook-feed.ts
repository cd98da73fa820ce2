/**
 * From events to messages: what an endpoint is to be told of becomes a row of the outbox, in one transaction with
 * moving on in the events. So each event is told once to each endpoint that wants it, whoever dies in between, and
 * whoever writes events writes nothing more for webhooks.
 *
 * The reader's row is the lock: of several nodes one reads at a time.
 */
import { newId } from '../../base/id.ts';
import { wants } from '../../webhooks/subscribed-types.ts';
import { insertOf } from '../engine/insert-rows.ts';
import { type Db, isPostgres, type Trx } from '../engine/open.ts';
import { type EventRecord, readEvents } from '../events/read-events.ts';
import { orderingKeyOf, promote } from './webhook-outbox.ts';
import { lockWebhooks } from './webhooks.ts';

const reader = { name: 'webhooks' };

/** Some of the events that came; where it has got to, and whether there are more. */
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

/** While there is nobody to tell, what happened is passed over. */
export async function passOver(db: Db, position: number): Promise<void> {
  await db('event_readers').where(reader).where('position', '<', position).update({ position });
}

async function makeMessages(trx: Trx, events: EventRecord[], now: number): Promise<number> {
  const orgs = [...new Set(events.map(({ orgId }) => orgId))];
  if (orgs.length === 0) return 0;
  const endpoints = await trx('webhooks')
    .whereIn('org_id', orgs)
    .whereRaw("status = 'active'")
    .select('id', 'org_id', 'types', 'after_position');
  const wanted = endpoints.map((row) => ({ ...row, types: JSON.parse(row.types) as string[] }));
  const messages = events.flatMap((event) =>
    wanted
      .filter(({ org_id, types }) => org_id === event.orgId && wants(types, event.type))
      .filter(({ after_position }) => event.position > after_position)
      .map(({ id }) => ({ webhookId: id as string, event })),
  );
  return addMessages(trx, messages, now);
}

export interface NewMessage {
  webhookId: string;
  event: Pick<EventRecord, 'id' | 'type' | 'position'> & { email: { id: string } | null };
}

/** How many there were not before. Each waits for its turn, then those whose turn it is are due. */
export async function addMessages(trx: Trx, messages: NewMessage[], now: number): Promise<number> {
  const kept = new Set(
    (
      await lockWebhooks(
        trx,
        messages.map(({ webhookId }) => webhookId),
      )
    ).map(({ id }) => id),
  );
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
  // "where true" tells SQLite's parser that no join is meant. A replay may have been here before.
  const added = await trx.raw(`${insert} where true on conflict do nothing returning id`, values);
  await promote(
    trx,
    rows.map(({ webhook_id, lane }) => ({ webhookId: webhook_id, lane })),
    now,
  );
  return (isPostgres(trx) ? added.rows : added).length;
}
