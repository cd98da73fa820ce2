/** How much mail waits for the end of what the operator has ordered. Counts up to a limit, as in waiting-counts.ts. */
import type { Db } from '#platform/database/engine/open.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';
import { countIn, maxCounted } from './waiting-counts.ts';

/** Mail to a destination, or to a recipient domain. */
export async function countOrdered(db: Db, name: string): Promise<number> {
  const served: string[] = await db('routes').where({ destination: name }).pluck('domain');
  return countIn(db, 'waiting', [...new Set([name, ...served])]);
}

/** Held by the operator, keyed by recipient domain; `since`: when the first of it was held. */
export async function heldByDomain(db: Db): Promise<Map<string, { count: number; since: number }>> {
  const some = db('deliveries')
    .where(inStage('held'))
    .whereRaw('auto_held is not true')
    .limit(maxCounted)
    .select('domain', 'updated_at');
  const rows = await db(some.as('some'))
    .groupBy('domain')
    .select('domain', db.raw('count(*) as count'), db.raw('min(updated_at) as since'));
  return new Map(
    rows.map(({ domain, count, since }) => [domain ?? '', { count: Number(count), since: Number(since) }]),
  );
}

export async function pausedWithMail(db: Db, limit: number) {
  const rows = await db('organizations')
    .whereNotNull('paused_at')
    .orderBy('paused_at')
    .limit(limit)
    .select('id', 'name', 'paused_at', 'paused_reason');
  return Promise.all(
    rows.map(async ({ id, name, paused_at, paused_reason }) => {
      const some = db('deliveries')
        .where(inStage('waiting'))
        .where({ org_id: id })
        .limit(maxCounted)
        .select(db.raw('1'));
      const row = await db(some.as('some')).count('* as count').first();
      return { name, since: Number(paused_at), reason: paused_reason as string, count: Number(row!.count) };
    }),
  );
}
