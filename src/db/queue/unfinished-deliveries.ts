/**
 * The deliveries that are not final, in four pools: waiting (due now or later), leased to a node and being sent, held by the
 * operator, scheduled by the sender for a later time. Each has partial indexes, which stay small however many deliveries there have been.
 *
 * A database uses a partial index only if the statement has the index's own condition, so statements use exactly these.
 */
import type { Knex } from 'knex';

export const pools = {
  waiting: "status in ('queued', 'deferred')",
  leased: 'lease_owner is not null',
  held: "status = 'held'",
  scheduled: "status = 'scheduled'",
} as const;

export type Pool = keyof typeof pools;

export const everyPool = Object.keys(pools) as Pool[];

/** The pools of mail that has started. Scheduled mail is no part of the queue until its time. */
export const queuePools = everyPool.filter((pool) => pool !== 'scheduled');

/** For `where`; null: no condition. */
export function inPool(pool: Pool | null): (query: Knex.QueryBuilder) => void {
  return (query) => {
    if (pool) query.whereRaw(pools[pool]);
  };
}
