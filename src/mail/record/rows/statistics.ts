/**
 * Statistics by organization and hour, so that no page has to count emails. They are summed up from the events, so the hot
 * path writes nothing for them: some events at a time, in one transaction with the reader's new position. So each event is
 * counted once, also after a crash; the reader's row is the lock, so one node counts at a time. After an upgrade it starts with
 * the oldest event that is kept. An event counts in the hour in which it happened, not in the hour of its email. Test mail is
 * not counted.
 */

import { latencyBounds } from '#mail/record/latency.ts';
import { query } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { settledPosition } from './read-events.ts';

export const hourMs = 3_600_000;

/** The counts and the types of their events. */
const counted = {
  sent: 'email.queued',
  delivered: 'email.delivered',
  deferred: 'email.deferred',
  bounced: 'email.bounced',
  expired: 'email.expired',
  complained: 'email.complained',
  opened: 'email.opened',
  clicked: 'email.clicked',
} as const;

export type Counts = Record<keyof typeof counted, number>;

export const countNames = Object.keys(counted) as (keyof Counts)[];

export interface HourFigures extends Counts {
  hour: number;
  /** Deliveries by the latency classes of mail/record/latency.ts. */
  took: number[];
}

const reader = { name: 'statistics' };

/** Takes some 10 ms, during which SQLite does nothing else. */
const eventsAtOnce = 1000;

/** Returns how many events it has read. */
export async function sumUp(db: Db): Promise<number> {
  return db.transaction(async (trx) => {
    const { position: after } = await trx('event_readers').where(reader).forUpdate().first();
    // Must come before the events are read (read-events.ts).
    const settled = await settledPosition(trx);
    if (settled <= after) return 0;
    const batch = trx('events')
      .where('position', '>', after)
      .where('position', '<=', settled)
      .orderBy('position')
      .limit(eventsAtOnce);
    const positions: number[] = await batch.pluck('position');
    const last = positions.at(-1);
    if (last === undefined) return 0;
    await query(trx, sums, [after, last]);
    await trx('event_readers').where(reader).update({ position: last });
    return positions.length;
  });
}

const classes = [...latencyBounds, Number.POSITIVE_INFINITY];
const tookNames = classes.map((_, index) => `took_${index}`);
const columns = [...countNames, ...tookNames];

/** Every open and click is an event; only a person's first counts, whose time the delivery has. */
const conditions = [
  ...countNames.map((name) => {
    const isFirst = { opened: 'open_first_at = events.at', clicked: 'click_first_at = events.at' }[
      name as string
    ];
    return `events.type = '${counted[name]}'${isFirst ? ` and deliveries.${isFirst}` : ''}`;
  }),
  ...classes.map((bound, index) => {
    const took = 'events.at - deliveries.created_at';
    const isLonger = index === 0 ? '' : ` and ${took} > ${classes[index - 1]}`;
    const isShorter = bound === Number.POSITIVE_INFINITY ? '' : ` and ${took} <= ${bound}`;
    return `events.type = '${counted.delivered}'${isLonger}${isShorter}`;
  }),
];

const ofDelivery = [counted.delivered, counted.opened, counted.clicked].map((type) => `'${type}'`).join(', ');

const sums = `
  insert into statistics (org_id, hour, ${columns.join(', ')})
  select events.org_id, events.at - events.at % ${hourMs} as begun,
    ${conditions.map((condition) => `count(case when ${condition} then 1 end)`).join(',\n    ')}
  from events
  left join deliveries on events.type in (${ofDelivery})
    and deliveries.email_id = events.email_id and deliveries.recipient = events.recipient
  where events.position > ? and events.position <= ?
    and events.type in (${Object.values(counted)
      .map((type) => `'${type}'`)
      .join(', ')})
    and not exists (
      select 1 from emails where emails.org_id = events.org_id and emails.id = events.email_id and is_test)
  group by events.org_id, begun
  on conflict (org_id, hour) do update set
    ${columns.map((name) => `${name} = statistics.${name} + excluded.${name}`).join(', ')}`;

/** Lists the hours that began at `since` or later and have figures, the oldest first. */
export async function readFigures(db: Db, orgId: string, since: number): Promise<HourFigures[]> {
  const rows = await db('statistics').where({ org_id: orgId }).where('hour', '>=', since).orderBy('hour');
  return rows.map((row) => ({
    hour: row.hour,
    ...(Object.fromEntries(countNames.map((name) => [name, row[name]])) as Counts),
    took: tookNames.map((name) => row[name]),
  }));
}

const hoursAtOnce = 500;

/** Deletes hours from before `until`; returns how many. */
export async function forgetFigures(db: Db, until: number): Promise<number> {
  const oldest = await db('statistics')
    .where('hour', '<', until)
    .orderBy('hour')
    .limit(hoursAtOnce)
    .select('org_id', 'hour');
  if (oldest.length === 0) return 0;
  return db('statistics')
    .whereIn(
      ['org_id', 'hour'],
      oldest.map(({ org_id, hour }) => [org_id, hour]),
    )
    .delete();
}
