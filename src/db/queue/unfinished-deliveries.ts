/**
 * The deliveries that are not final, in three pools, each with partial indexes that hold its few rows however many
 * there have been: what waits (due now, or later), what is leased to a node and being sent, what the operator holds.
 *
 * A database uses a partial index where a statement says the index's own condition; so statements say these, and say
 * them as they stand here.
 */
import type { Knex } from 'knex';

export const pools = {
  waiting: "status in ('queued', 'deferred')",
  leased: 'lease_owner is not null',
  held: "status = 'held'",
} as const;

export type Pool = keyof typeof pools;

export const everyPool = Object.keys(pools) as Pool[];

/** For `where`. */
export function inPool(pool: Pool): (query: Knex.QueryBuilder) => void {
  return (query) => {
    query.whereRaw(pools[pool]);
  };
}
