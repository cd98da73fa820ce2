/**
 * Reads events in the order in which they became visible. Every event has a position; whoever has read all up to one,
 * and goes on after it, misses nothing and reads nothing twice, however many write meanwhile.
 *
 * It holds because nothing beyond the settled position is read: of that and all before, nothing is under way any more.
 * On SQLite that is all there is, for there is one writer at a time. On PostgreSQL `events_settled()` knows it (the
 * migration 005-events has why), and it is asked before the rows are read: by a statement of its own, so that they are
 * seen as they are after it.
 */
import { type Db, isPostgres } from '../engine/open.ts';

export interface EventRecord {
  position: number;
  id: string;
  orgId: string;
  type: string;
  at: number;
  recipient: string | null;
  data: Record<string, unknown>;
  /** Null for what happened to the organization. */
  email: EventEmail | null;
}

interface EventEmail {
  id: string;
  messageId: string;
  from: string;
  subject: string;
  tags: Record<string, string>;
}

export interface EventQuery {
  /** Null: everybody's. */
  orgId: string | null;
  /** The position that was reached; 0 begins with the oldest. */
  after: number;
  limit: number;
  types?: readonly string[];
  emailId?: string;
}

export interface EventPage {
  events: EventRecord[];
  /** Where to go on. */
  position: number;
  /** There may be more, now. */
  isMore: boolean;
}

/** So many events are looked at for those of some types; beyond them the next page begins. */
const maxScanned = 2000;

/** Where a reader begins who wants only what comes. */
export async function settledPosition(db: Db): Promise<number> {
  if (isPostgres(db)) return (await db.raw('select events_settled() as position')).rows[0].position;
  const [row] = await db.raw("select seq as position from sqlite_sequence where name = 'events'");
  return row?.position ?? 0;
}

/** The time of the event that was told last; null where there is none. */
export async function newestEventAt(db: Db): Promise<number | null> {
  const newest = await db('events').orderBy('position', 'desc').first('at');
  return newest?.at ?? null;
}

export async function readEvents(db: Db, query: EventQuery): Promise<EventPage> {
  const settled = await settledPosition(db);
  const { after, limit } = query;
  // Those who wait for what comes ask often.
  if (settled <= after) return { events: [], position: after, isMore: false };
  const stretch = await stretchOf(db, query, settled);
  const rows = await rowsOf(db, query, stretch.end);
  const events = rows.slice(0, limit);
  const isCut = rows.length > limit;
  const last = events.at(-1)?.position ?? after;
  return {
    events,
    position: isCut ? last : (stretch.reached ?? last),
    isMore: isCut || stretch.isCut,
  };
}

/** What is looked through: for some types so many events at most, of which the last is then reached, wanted or not. */
async function stretchOf(db: Db, { orgId, after, types, emailId }: EventQuery, settled: number) {
  // The events of one email are few.
  if (!types || emailId !== undefined) return { end: settled, reached: null, isCut: false };
  const positions = db('events')
    .where('position', '>', after)
    .where('position', '<=', settled)
    .orderBy('position')
    .limit(maxScanned);
  if (orgId !== null) positions.where({ org_id: orgId });
  const found: number[] = await positions.pluck('position');
  const end = found.at(-1) ?? after;
  return { end, reached: end, isCut: found.length === maxScanned };
}

/** One more than the limit, where there is one. */
async function rowsOf(db: Db, query: EventQuery, end: number): Promise<EventRecord[]> {
  const { orgId, after, limit, types, emailId } = query;
  const rows = db('events')
    .leftJoin('emails', 'emails.id', 'events.email_id')
    .where('events.position', '>', after)
    .where('events.position', '<=', end)
    .limit(limit + 1)
    .select('events.*', 'emails.message_id', 'emails.sender', 'emails.subject', 'emails.tags');
  if (types) rows.whereIn('events.type', types);
  if (emailId !== undefined) {
    // An expression, so that neither database goes through the organization's events in search of this email's.
    rows.where('events.email_id', emailId).orderByRaw('events.position + 0');
    if (orgId !== null) rows.whereRaw(isPostgres(db) ? 'events.org_id = ?' : '+events.org_id = ?', [orgId]);
  } else {
    rows.orderBy('events.position');
    if (orgId !== null) rows.where('events.org_id', orgId);
  }
  return (await rows).map(eventFrom);
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function eventFrom(row: any): EventRecord {
  return {
    position: row.position,
    id: row.id,
    orgId: row.org_id,
    type: row.type,
    at: row.at,
    recipient: row.recipient,
    data: JSON.parse(row.data),
    email:
      // What came in for an email that was forgotten at that moment is nobody's.
      row.email_id === null || row.message_id === null
        ? null
        : {
            id: row.email_id,
            messageId: row.message_id,
            from: row.sender,
            subject: row.subject,
            tags: JSON.parse(row.tags),
          },
  };
}

/**
 * By id; those that are not kept any more are left out. `positions`: theirs, where they are known, so that PostgreSQL looks
 * in their partitions alone.
 */
export async function findEvents(
  db: Db,
  ids: readonly string[],
  positions: readonly number[] = [],
): Promise<EventRecord[]> {
  const rows = db('events')
    .leftJoin('emails', 'emails.id', 'events.email_id')
    .whereIn('events.id', ids)
    .select('events.*', 'emails.message_id', 'emails.sender', 'emails.subject', 'emails.tags');
  if (positions.length > 0)
    rows.whereBetween('events.position', [Math.min(...positions), Math.max(...positions)]);
  return (await rows).map(eventFrom);
}
