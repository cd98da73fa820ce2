/** Resend's lists: `limit`, and `after` or `before` an id; the newest first. */
import { z } from 'zod';
import { uuidIn } from '../../api/query.ts';
import { Refusal } from '../../mail/refusal.ts';
import { check, type DialectCall } from '../dialect.ts';

const maxLimit = 100;

const query = z.object({
  limit: z.coerce.number().int().min(1).max(maxLimit).default(20),
  after: z.string().optional(),
  before: z.string().optional(),
});

function listQuery({ context }: DialectCall) {
  return check(query, { ...context.query });
}

/** The query of a list that is read in one direction only. */
export function forwardQuery(call: DialectCall): { limit: number; after?: string } {
  const { limit, after, before } = listQuery(call);
  if (before === undefined) return { limit, ...(after !== undefined && { after }) };
  throw new Refusal('BAD_REQUEST', 'before: this list has no way back. Go on with after.');
}

/** A page of such a list, whose ids are ours. */
export async function pageOf<Row>(
  call: DialectCall,
  read: (page: { limit: number; after?: string }) => Promise<Row[]>,
  present: (row: Row) => object,
) {
  const { limit, after } = forwardQuery(call);
  const last = after === undefined ? undefined : uuidIn(after);
  if (last === null)
    throw new Refusal('BAD_REQUEST', 'after: must be the id of the last one of the page before.');
  // One more, to see whether there are more.
  const rows = await read({ limit: limit + 1, ...(last !== undefined && { after: last }) });
  return { object: 'list', has_more: rows.length > limit, data: rows.slice(0, limit).map(present) };
}

/** A page of a list that is read whole, because it is short. */
export function listOf<Row extends { id: string }>(
  call: DialectCall,
  rows: Row[],
  present: (row: Row) => object,
) {
  const { limit, after, before } = listQuery(call);
  const newest = rows.toReversed();
  const at = (id: string) => newest.findIndex((row) => row.id === id);
  const start = after === undefined ? 0 : at(after) + 1;
  const end = before === undefined ? newest.length : Math.max(at(before), 0);
  const within = newest.slice(start, end);
  const page = before === undefined ? within.slice(0, limit) : within.slice(-limit);
  return { object: 'list', has_more: within.length > page.length, data: page.map(present) };
}
