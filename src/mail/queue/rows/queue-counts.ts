/**
 * The queue's size, for the metrics. Counting reads only the partial indexes of unfinished deliveries (unfinished-deliveries.ts),
 * no table: some 30 ms for a million on SQLite. The caller uses a connection that nothing else waits for, and not too often.
 */
import { query } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { stages } from '#platform/database/tables/unfinished-deliveries.ts';

export interface QueueDepth {
  /** Due, and waiting for capacity. */
  due: number;
  /** Not yet due. */
  later: number;
  sending: number;
  held: number;
  /** Waiting for the time that the sender has set. */
  scheduled: number;
}

/** Due time of the delivery that has been due the longest; null if none is due. One index seek. */
export async function oldestDue(db: Db, now: number): Promise<number | null> {
  const [row] = await query<{ due_at: number }>(
    db,
    `select due_at from deliveries where ${stages.waiting} order by due_at limit 1`,
    [],
  );
  return row && row.due_at <= now ? row.due_at : null;
}

export async function queueDepth(db: Db, now: number): Promise<QueueDepth> {
  const count = async (condition: string, values: number[] = []) => {
    const [row] = await query<{ count: number | string }>(
      db,
      `select count(*) as count from deliveries where ${condition}`,
      values,
    );
    return Number(row!.count);
  };
  return {
    due: await count(`${stages.waiting} and due_at <= ?`, [now]),
    later: await count(`${stages.waiting} and due_at > ?`, [now]),
    sending: await count(stages.leased),
    held: await count(stages.held),
    scheduled: await count(stages.scheduled),
  };
}

/** The deliveries that are not final yet, by their state. Reads the whole table. */
export async function countUnfinished(db: Db): Promise<Record<string, number>> {
  const rows: { status: string; count: number }[] = await db('deliveries')
    .whereIn('status', ['scheduled', 'queued', 'deferred', 'sending', 'held'])
    .groupBy('status')
    .orderBy('status')
    .select('status', db.raw('count(*) as count'));
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

export interface WebhookBacklog {
  /** Messages to be tried now or later. */
  open: number;
  /** Time of the oldest event that an active endpoint has not accepted; null if there is none. */
  oldestAt: number | null;
}

/**
 * Reads the index of open messages, then two events by position: the oldest one that waits, and the first that is not yet in
 * the outbox.
 */
export async function webhookBacklog(db: Db): Promise<WebhookBacklog> {
  const open = await query<{ count: number | string; position: number }>(
    db,
    `select count(*) as count, min(position) as position from webhook_messages
     where due_at is not null and webhook_id in (select id from webhooks where status = 'active')
     group by webhook_id`,
    [],
  );
  const [unread] = await query<{ at: number }>(
    db,
    `select at from events where position > (select position from event_readers where name = 'webhooks')
       and exists (select 1 from webhooks where status = 'active')
     order by position limit 1`,
    [],
  );
  const oldest = Math.min(...open.map(({ position }) => position));
  const waiting = open.length > 0 ? await db('events').where({ position: oldest }).first('at') : undefined;
  const times = [unread, waiting].flatMap((event) => (event ? [event.at] : []));
  return {
    open: open.reduce((sum, { count }) => sum + Number(count), 0),
    oldestAt: times.length > 0 ? Math.min(...times) : null,
  };
}
