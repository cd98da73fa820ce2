/**
 * Reads events in the order of their positions. A reader that continues after the last position it has read misses nothing and
 * reads nothing twice, however many transactions write meanwhile.
 *
 * This holds because nothing after the settled position is read: all transactions that have a position up to it have ended. On
 * SQLite, with one writer, it is the last position; AUTOINCREMENT never gives a position twice, also after the newest event was
 * deleted. PostgreSQL gives positions from a sequence, and transactions commit in any order: a trigger takes a shared lock in
 * each that adds events, which names the last position given before its own. `events_settled()` computes the settled position
 * from the locks (schema.postgres.sql), in a statement of its own before the rows are read, so that they are read in their state
 * after it.
 */
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { number, orNull, records, text } from '#platform/database/engine/records.ts';
import { eventData } from '#platform/database/tables/packed-records.ts';
import { receivedTestDomain } from '#platform/values/test-route.ts';

const events = records({
  position: number,
  id: text,
  orgId: text,
  type: text,
  at: number,
  recipient: orNull(text),
});

interface EventEmail {
  id: string;
  messageId: string;
  from: string;
  subject: string;
  tags: Record<string, string>;
  isTest: boolean;
  /** Null: `transactional`. */
  stream?: string | null;
}

export type EventRecord = ReturnType<typeof events.read> & {
  data: Record<string, unknown>;
  /** Null for an event of the organization. */
  email: EventEmail | null;
};

export interface EventQuery {
  /** Null: of all organizations. */
  orgId: string | null;
  /** The last position that was read; 0: start with the oldest event. */
  after: number;
  limit: number;
  types?: readonly string[];
  emailId?: string;
  /** Only those of test mail. */
  onlyTest?: boolean;
}

export interface EventPage {
  events: EventRecord[];
  /** Continue after this. */
  position: number;
  /** There may be more events now. */
  isMore: boolean;
}

/** Maximum number of events that are read in search of some; the next page starts after them. */
const maxScanned = 2000;

/** A reader that wants only future events starts after this position. */
export async function settledPosition(db: Db): Promise<number> {
  if (isPostgres(db)) return (await db.raw('select events_settled() as position')).rows[0].position;
  const [row] = await db.raw("select seq as position from sqlite_sequence where name = 'events'");
  return row?.position ?? 0;
}

/** The time of the newest event; null if there is none. */
export async function newestEventAt(db: Db): Promise<number | null> {
  const newest = await db('events').orderBy('position', 'desc').first('at');
  return newest?.at ?? null;
}

export async function readEvents(db: Db, query: EventQuery): Promise<EventPage> {
  const settled = await settledPosition(db);
  const { after, limit } = query;
  // Readers that wait for new events ask often.
  if (settled <= after) return { events: [], position: after, isMore: false };
  const range = await rangeOf(db, query, settled);
  const rows = await rowsOf(db, query, range.end);
  const events = rows.slice(0, limit);
  const isCut = rows.length > limit;
  const last = events.at(-1)?.position ?? after;
  return {
    events,
    position: isCut ? last : (range.reached ?? last),
    isMore: isCut || range.isCut,
  };
}

/**
 * The range to read: of a selection, at most `maxScanned` events; its last event then counts as read even if it does not match.
 */
async function rangeOf(db: Db, { orgId, after, types, emailId, onlyTest }: EventQuery, settled: number) {
  // The events of one email are few.
  if (!(types || onlyTest) || emailId !== undefined) return { end: settled, reached: null, isCut: false };
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

/** Reads one event more than the limit, if there is one. */
async function rowsOf(db: Db, query: EventQuery, end: number): Promise<EventRecord[]> {
  const { orgId, after, limit, types, emailId, onlyTest } = query;
  const rows = db('events')
    .leftJoin('emails', 'emails.id', 'events.email_id')
    .where('events.position', '>', after)
    .where('events.position', '<=', end)
    .limit(limit + 1)
    .select('events.*', ...emailColumns);
  if (types) rows.whereIn('events.type', types);
  if (onlyTest)
    rows.whereRaw("(emails.is_test or (events.type = 'email.received' and events.recipient like ?))", [
      `%@${receivedTestDomain}`,
    ]);
  if (emailId !== undefined) {
    // Expressions, so that neither database scans the organization's events for those of this email.
    rows.where('events.email_id', emailId).orderByRaw('events.position + 0');
    if (orgId !== null) rows.whereRaw(isPostgres(db) ? 'events.org_id = ?' : '+events.org_id = ?', [orgId]);
  } else {
    rows.orderBy('events.position');
    if (orgId !== null) rows.where('events.org_id', orgId);
  }
  return (await rows).map(eventFrom);
}

const emailColumns = ['message_id', 'sender', 'subject', 'tags', 'is_test', 'stream'].map(
  (name) => `emails.${name}`,
);

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
function eventFrom(row: any): EventRecord {
  const { email_id: id, message_id: messageId, sender: from, subject, tags, is_test, stream } = row;
  // An event that came in while its email was being deleted has no email.
  const hasEmail = id !== null && messageId !== null;
  return {
    ...events.read(row),
    data: eventData(row),
    email: hasEmail
      ? { id, messageId, from, subject, tags: JSON.parse(tags), isTest: Boolean(is_test), stream }
      : null,
  };
}

/** Finds events by id; deleted ones are left out. With their `positions`, PostgreSQL reads only the partitions of these. */
export async function findEvents(
  db: Db,
  ids: readonly string[],
  positions: readonly number[] = [],
): Promise<EventRecord[]> {
  const rows = db('events')
    .leftJoin('emails', 'emails.id', 'events.email_id')
    .whereIn('events.id', ids)
    .select('events.*', ...emailColumns);
  if (positions.length > 0)
    rows.whereBetween('events.position', [Math.min(...positions), Math.max(...positions)]);
  return (await rows).map(eventFrom);
}

/** The operator's reason for the latest hold of a recipient's mail; null if it was never held. */
export async function lastHold(db: Db, emailId: string, recipient: string): Promise<string | null> {
  const row = await db('events')
    .where({ email_id: emailId, recipient, type: 'email.held' })
    .orderBy('position', 'desc')
    .first('data');
  return row ? String(JSON.parse(row.data).reason) : null;
}
