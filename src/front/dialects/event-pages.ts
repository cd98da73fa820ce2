/**
 * Reads an organization's events between two times, page by page, forward or backward, from a position between two events. They
 * are stored in an order that is only roughly that of their times.
 */
import { positionBefore, readEventsBefore } from '#mail/record/rows/event-range.ts';
import { type EventRecord, readEvents } from '#mail/record/rows/read-events.ts';
import type { DialectCall } from './dialect.ts';

export interface EventSearch {
  types: readonly string[];
  /** The first and the last time. */
  since: number;
  until: number;
  isForward: boolean;
  /** The events up to this one are on one side, the later ones on the other; undefined: from the time on. */
  position?: number | undefined;
  /** The first page is small, because it may have all that is wanted. */
  firstSize?: number;
}

interface EventPage {
  events: EventRecord[];
  /** The next page starts there. */
  end: number;
  isLast: boolean;
}

const skewMs = 60_000;
/** Reads of the database for one call, each of which looks at 2,000 events at most. */
const maxReads = 200;
const maxPageSize = 500;

export async function startOf(
  { db, orgId }: DialectCall,
  { since, until, isForward, position }: EventSearch,
): Promise<number> {
  if (position !== undefined) return position;
  if (isForward) return positionBefore(db, orgId, since);
  return until === Number.MAX_SAFE_INTEGER ? until : positionBefore(db, orgId, until + 2 * skewMs);
}

/** If there are too many events to read, no page is the last. */
export async function* eventPages(call: DialectCall, search: EventSearch): AsyncGenerator<EventPage> {
  const { types, since, until, isForward } = search;
  let position = await startOf(call, search);
  let limit = search.firstSize ?? maxPageSize;
  for (let reads = 0; reads < maxReads; reads += 1, limit = Math.min(2 * limit, maxPageSize)) {
    const page = await readPage(call, { types, limit, position, isForward });
    const last = page.events.at(-1)?.at ?? (isForward ? 0 : until);
    const isBeyond = isForward ? last > until + skewMs : last < since - skewMs;
    yield {
      events: page.events.filter(({ at }) => at >= since && at <= until),
      end: page.end,
      isLast: types.length === 0 || !page.isMore || isBeyond,
    };
    position = page.end;
  }
}

type PageQuery = { limit: number; position: number } & Pick<EventSearch, 'types' | 'isForward'>;

async function readPage(
  { db, orgId, caller }: DialectCall,
  { types, limit, position, isForward }: PageQuery,
) {
  const onlyTest = caller.isTest;
  if (isForward) {
    const page = await readEvents(db, { orgId, onlyTest, limit, types, after: position });
    return { ...page, end: page.position };
  }
  const page = await readEventsBefore(db, { orgId, onlyTest, limit, types, before: position + 1 });
  return { ...page, end: Math.max(page.position - 1, 0) };
}
