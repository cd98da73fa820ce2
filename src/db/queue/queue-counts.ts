/**
 * How much there is to do, for the metrics. The count of the queue goes through indexes that hold nothing but what
 * waits (unfinished-deliveries.ts) and through no table: some 30 ms for a million on SQLite. Whoever asks gives it a connection that
 * nobody else waits for, and does not ask too often.
 */
import { query } from '../engine/json-rows.ts';
import type { Db } from '../engine/open.ts';
import { pools } from './unfinished-deliveries.ts';

export interface QueueDepth {
  /** Due, and only waiting for room. */
  due: number;
  /** Their next attempt is to come. */
  later: number;
  sending: number;
  held: number;
}

/** Since when the delivery that has been due the longest has been; null where none is. One seek. */
export async function oldestDue(db: Db, now: number): Promise<number | null> {
  const [row] = await query<{ due_at: number }>(
    db,
    `select due_at from deliveries where ${pools.waiting} order by due_at limit 1`,
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
    due: await count(`${pools.waiting} and due_at <= ?`, [now]),
    later: await count(`${pools.waiting} and due_at > ?`, [now]),
    sending: await count(pools.leased),
    held: await count(pools.held),
  };
}

export interface WebhookBacklog {
  /** Messages to be tried now or later. */
  open: number;
  /** When the oldest event was that an active endpoint has not taken; null where there is none. */
  oldestAt: number | null;
}

/** By the index of what is open, then by the positions of two events: the oldest that waits, and the next to be told. */
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
  const positions = open.map(({ position }) => position);
  const waiting: { at: number }[] =
    positions.length > 0
      ? await db('events')
          .where({ position: Math.min(...positions) })
          .select('at')
      : [];
  const times = [...(unread ? [unread] : []), ...waiting].map(({ at }) => at);
  return {
    open: open.reduce((sum, { count }) => sum + Number(count), 0),
    oldestAt: times.length > 0 ? Math.min(...times) : null,
  };
}
