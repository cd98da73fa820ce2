/** When time alone changes something in the queue: mail falls due or reaches its maximum age, or an operator's rule ends. */
import { query } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { stages } from '#platform/database/tables/unfinished-deliveries.ts';

const never = Number.POSITIVE_INFINITY;

/** The earliest such time after `since`; infinite if there is none. Three index seeks, and a look at few rows. */
export async function nextDueAt(db: Db, since: number): Promise<number> {
  const [row] = await query<Record<string, number | null>>(
    db,
    `select
       (select due_at from deliveries where ${stages.waiting} and due_at > ? order by due_at limit 1) as "dueAt",
       (select expires_at from deliveries where ${stages.waiting} and expires_at > ? order by expires_at limit 1) as "expiresAt",
       (select due_at from deliveries where ${stages.scheduled} and due_at > ? order by due_at limit 1) as "scheduledAt",
       (select min(until) from suspensions where until > ?) as "resumesAt",
       (select min(until) from destination_rules where until > ?) as "ruleEndsAt"`,
    [since, since, since, since, since],
  );
  return Math.min(...Object.values(row!).map((at) => at ?? never));
}

/** When the first mail falls due after `after`, is at its maximum age, and starts as scheduled; infinite if there is none. */
export async function firstTimes(db: Db, after: number) {
  const [row] = await query<Record<'dueAt' | 'expiresAt' | 'scheduledAt', number | null>>(
    db,
    `select
       (select due_at from deliveries where ${stages.waiting} and due_at > ? order by due_at limit 1) as "dueAt",
       (select expires_at from deliveries where ${stages.waiting} order by expires_at limit 1) as "expiresAt",
       (select due_at from deliveries where ${stages.scheduled} order by due_at limit 1) as "scheduledAt"`,
    [after],
  );
  const { dueAt, expiresAt, scheduledAt } = row!;
  return { dueAt: dueAt ?? never, expiresAt: expiresAt ?? never, scheduledAt: scheduledAt ?? never };
}
