/** Reads an organization's events by time, and backwards. Positions follow the times of events only roughly: see `skewMs`. */
import { idList, query } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { type EventPage, findEvents, settledPosition } from './read-events.ts';

/** An event has its time before its transaction gives it a position, and nodes have clocks of their own. */
const skewMs = 60_000;

/** A position before every event of this time or later. Each step halves the range. */
export async function positionBefore(db: Db, orgId: string, at: number): Promise<number> {
  let low = 0;
  let high = await settledPosition(db);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const event = await db('events')
      .where({ org_id: orgId })
      .where('position', '>', middle)
      .where('position', '<=', high)
      .orderBy('position')
      .first('position', 'at');
    if (!event || event.at >= at - skewMs) high = middle;
    else low = event.position;
  }
  return low;
}

interface BackwardQuery {
  orgId: string;
  /** Positions below this one. */
  before: number;
  limit: number;
  types: readonly string[];
  onlyTest: boolean;
}

/** Events that one call looks at. */
const maxScanned = 2000;

/** The newest first. Continue before `position`. */
export async function readEventsBefore(
  db: Db,
  { orgId, before, limit, types, onlyTest }: BackwardQuery,
): Promise<EventPage> {
  const settled = await settledPosition(db);
  const rows: { id: string; position: number; type: string; email_id: string | null }[] = await db('events')
    .where({ org_id: orgId })
    .where('position', '<', Math.min(before, settled + 1))
    .orderBy('position', 'desc')
    .limit(maxScanned)
    .select('id', 'position', 'type', 'email_id');
  const ofTypes = rows.filter(({ type }) => types.includes(type));
  const wanted = onlyTest ? await ofTestMail(db, ofTypes) : ofTypes;
  const page = wanted.slice(0, limit);
  const isCut = wanted.length > limit;
  const events = await findEvents(
    db,
    page.map(({ id }) => id),
    page.map(({ position }) => position),
  );
  return {
    events: events.toSorted((a, b) => b.position - a.position),
    position: (isCut ? page : rows).at(-1)?.position ?? 0,
    isMore: isCut || rows.length === maxScanned,
  };
}

async function ofTestMail<Row extends { email_id: string | null }>(db: Db, rows: Row[]): Promise<Row[]> {
  const { select, value } = idList(db, new Set(rows.flatMap(({ email_id }) => email_id ?? [])));
  const found = await query<{ id: string }>(db, `select id from emails where id in (${select}) and is_test`, [
    value,
  ]);
  const ids = new Set(found.map(({ id }) => id));
  return rows.filter(({ email_id }) => email_id !== null && ids.has(email_id));
}
