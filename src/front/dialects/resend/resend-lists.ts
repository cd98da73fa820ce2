/** Resend's lists: `limit`, and `after` or `before` an id; the newest first. */
import { z } from 'zod';
import { type DialectCall, readParameters } from '#front/dialects/dialect.ts';
import { uuidIn } from '#front/http/query.ts';
import { Refusal } from '#platform/values/refusal.ts';

const maxLimit = 100;

const query = z.object({
  limit: z.coerce.number().int().min(1).max(maxLimit).default(20),
  after: z.string().optional(),
  before: z.string().optional(),
});

/** Rows after this one, in the order of the list, or the last ones before this one. */
type Page = z.output<typeof query>;

export function listQuery({ context }: DialectCall): Page {
  const wanted = readParameters(context, query);
  if (wanted.after === undefined || wanted.before === undefined) return wanted;
  throw new Refusal('VALIDATION_ERROR', 'after and before: give one of them.');
}

/** A page of a list whose ids are ours. `read` calls `onCut` if its page is shorter than it could be. */
export async function pageOf<Row>(
  call: DialectCall,
  read: (page: Page, onCut: () => void) => Promise<Row[]>,
  present: (row: Row) => object,
) {
  const { limit, after, before } = listQuery(call);
  const edge = before ?? after;
  if (edge !== undefined && uuidIn(edge) === null)
    throw new Refusal('BAD_REQUEST', 'after, before: must be the id of one in the list.');
  // One more, to see whether there are more.
  let isCut = false;
  const rows = await read({ limit: limit + 1, after, before }, () => {
    isCut = true;
  });
  const page = before === undefined ? rows.slice(0, limit) : rows.slice(-limit);
  return { object: 'list', has_more: isCut || rows.length > limit, data: page.map(present) };
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
