/** Pages of a list that is ordered by a column: the rows after one or, for the way back, those before one. */
import type { Knex } from 'knex';

export interface Neighbors {
  after?: string | null | undefined;
  /** Null: before the end. */
  before?: string | null | undefined;
  limit: number;
}

/** The nearest row first, so those before a row are in the other order. */
export function nearestFirst(
  rows: Knex.QueryBuilder,
  [column, order]: [column: string, order: 'asc' | 'desc'],
  { after, before, limit }: Neighbors,
): Knex.QueryBuilder {
  const isRising = (order === 'asc') === (before === undefined);
  const edge = before ?? after;
  if (edge != null) rows.where(column, isRising ? '>' : '<', edge);
  return rows.orderBy(column, isRising ? 'asc' : 'desc').limit(limit);
}

/** In the order of the list. */
export async function readNeighbors(...[rows, by, page]: Parameters<typeof nearestFirst>) {
  const found = await nearestFirst(rows, by, page);
  return page.before === undefined ? found : found.toReversed();
}
