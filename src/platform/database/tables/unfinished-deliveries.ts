/**
 * The deliveries that are not final, in four stages: waiting (due now or later), leased to a node and being sent, held by the
 * operator, scheduled by the sender for a later time. Each has partial indexes, which stay small however many deliveries
 * there have been.
 *
 * A database uses a partial index only if the statement has the index's own condition, so statements use exactly these.
 */
import type { Knex } from 'knex';

export const stages = {
  waiting: "status in ('queued', 'deferred')",
  leased: 'lease_owner is not null',
  held: "status = 'held'",
  scheduled: "status = 'scheduled'",
} as const;

export type Stage = keyof typeof stages;

export const everyStage = Object.keys(stages) as Stage[];

/** The stages of mail that has started. Scheduled mail is no part of the queue until its time. */
export const queueStages = everyStage.filter((stage) => stage !== 'scheduled');

/** The condition for `where`; null: none. */
export function inStage(stage: Stage | null): (query: Knex.QueryBuilder) => void {
  return (query) => {
    if (stage) query.whereRaw(stages[stage]);
  };
}
