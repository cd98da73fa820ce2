/** Resend's lists: `limit`, and `after` or `before` an id; the newest first. */
import { z } from 'zod';
import { check, type DialectCall } from '../dialect.ts';

const maxLimit = 100;

const query = z.object({
  limit: z.coerce.number().int().min(1).max(maxLimit).default(20),
  after: z.string().optional(),
  before: z.string().optional(),
});

export function listQuery({ context }: DialectCall) {
  return check(query, { ...context.query });
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
