/**
 * Statistics by organization and hour, and by group (group-statistics.ts), so that no page has to count emails. They are summed
 * up from the events, so the hot path writes nothing for them: some events at a time, in one transaction with the reader's new
 * position. So each event is counted once, also after a crash; the reader's row is the lock, so one node counts at a time. After
 * an upgrade it starts with the oldest event that is kept. An event counts in the hour in which it happened, not in the hour of
 * its email. Test mail is not counted.
 */

import {
  type CountedEvents,
  type Counts,
  counted,
  countNames,
  sumsOf,
  tookNames,
} from '#mail/record/counts.ts';
import { latencyBounds } from '#mail/record/latency.ts';
import { query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { addSums } from './add-sums.ts';
import { addToGroups } from './group-statistics.ts';
import { settledPosition } from './read-events.ts';

export const hourMs = 3_600_000;

export interface HourFigures extends Counts {
  hour: number;
  /** Deliveries by the latency classes of mail/record/latency.ts. */
  took: number[];
}

const reader = { name: 'statistics' };

/** Takes some 20 ms, during which SQLite writes nothing else. */
const eventsAtOnce = 1000;

/** No rule judges deferrals, and a host that does not answer makes some all the time. */
const deferralsWaitMs = 60_000;

/**
 * Returns how many events it has read. `onCounted` is called in the transaction, with each batch when it is counted. A few
 * deferrals alone wait until the first of them is a minute old at `now`.
 */
export async function sumUp(
  db: Db,
  onCounted: (trx: Trx, events: CountedEvents[]) => Promise<void> = async () => {},
  now = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  // The lock would be a commit, after which everything is looked at again.
  const { position: seen } = await db('event_readers').where(reader).first();
  const end = await settledPosition(db);
  if (end <= seen) return 0;
  if (end < seen + eventsAtOnce && !(await hasUrgent(db, { after: seen, end, now }))) return 0;
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
    const events = (await query<Happened>(trx, happened(trx), [after, last])).map(read);
    await addToHours(trx, events);
    await addToGroups(trx, events);
    await onCounted(trx, events);
    await trx('event_readers').where(reader).update({ position: last });
    return positions.length;
  });
}

async function hasUrgent(
  db: Db,
  { after, end, now }: { after: number; end: number; now: number },
): Promise<boolean> {
  const some = db('events').where('position', '>', after).where('position', '<=', end);
  const urgent = some.whereRaw('(type <> ? or at <= ?)', [counted.deferred, now - deferralsWaitMs]);
  return (await urgent.first('position')) !== undefined;
}

type Happened = Omit<CountedEvents, 'bounce' | 'isReturned'> & { data: string | null };

/** PostgreSQL returns counts as text. */
function read({ count, data, ...events }: Happened): CountedEvents {
  const { bounce = null, returned } = data === null ? {} : JSON.parse(data);
  return { ...events, bounce, isReturned: returned !== undefined, count: Number(count) };
}

const took = 'events.at - deliveries.created_at';

const tookClass = `case ${latencyBounds
  .map((bound, index) => `when ${took} <= ${bound} then ${index}`)
  .join(' ')} when ${took} is not null then ${latencyBounds.length} end`;

const listed = Object.values(counted).map((type) => `'${type}'`);

const emailOf = 'emails.id = events.email_id';
const deliveryOf = 'deliveries.email_id = events.email_id and deliveries.recipient = events.recipient';

/** PostgreSQL would rather read a small table whole; a bound makes it look up each row, however many there are. */
const lookedUp = (db: Db, table: string, condition: string) =>
  isPostgres(db)
    ? `left join lateral (select * from ${table} where ${condition} limit 1) as ${table} on true`
    : `left join ${table} on ${condition}`;

/** Every open and click is an event; only a person's first counts, whose time the delivery has. */
const happened = (db: Db) => `
  select org_id, hour, type, took, domain, sender, tags, key_id, stream, data, count(*) as count
  from (
    select events.org_id, events.at - events.at % ${hourMs} as hour, events.type,
      case when events.type = '${counted.delivered}' then ${tookClass} end as took,
      deliveries.domain, emails.sender, emails.tags, emails.key_id, emails.stream,
      case when events.type = '${counted.bounced}' then events.data end as data
    from events
    ${lookedUp(db, 'emails', emailOf)}
    ${lookedUp(db, 'deliveries', deliveryOf)}
    where events.position > ? and events.position <= ? and events.type in (${listed}) and emails.is_test is not true
      and (events.type <> '${counted.opened}' or deliveries.open_first_at = events.at)
      and (events.type <> '${counted.clicked}' or deliveries.click_first_at = events.at)) as each_event
  group by org_id, hour, type, took, domain, sender, tags, key_id, stream, data`;

async function addToHours(trx: Trx, events: CountedEvents[]): Promise<void> {
  const hours = Map.groupBy(events, ({ org_id, hour }) => `${org_id} ${hour}`);
  const rows = [...hours.values()].map((some) => {
    const [{ org_id, hour }] = some as [CountedEvents];
    const { hard: _, ...sums } = sumsOf(some);
    return { org_id, hour, ...sums };
  });
  await addSums(trx, 'statistics', ['org_id', 'hour'], rows);
}

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
