/**
 * How much mail waits for some destinations. Counts in the index of waiting mail by domain, and only up to a limit, so that a
 * view that refreshes itself costs the same however long the queue is.
 */
import type { Db } from '../engine/open.ts';
import { partsOf } from '../engine/parts-of.ts';
import { inPool } from './unfinished-deliveries.ts';

export const maxCounted = 100_000;

const domainsPerStatement = 500;

/** By destination; `maxCounted` means that many or more. */
export async function countWaiting(db: Db, destinations: string[]): Promise<Map<string, number>> {
  const routes: { domain: string; destination: string }[] =
    destinations.length === 0
      ? []
      : await db('routes').whereIn('destination', destinations).select('domain', 'destination');
  const domains = Map.groupBy(routes, ({ destination }) => destination);
  const counts = new Map<string, number>();
  for (const destination of destinations) {
    const served = (domains.get(destination) ?? []).map(({ domain }) => domain);
    counts.set(destination, await countOf(db, [...new Set([destination, ...served])]));
  }
  return counts;
}

async function countOf(db: Db, domains: string[]): Promise<number> {
  let count = 0;
  for (const part of partsOf(domains, domainsPerStatement)) {
    const some = db('deliveries')
      .where(inPool('waiting'))
      .whereIn('domain', part)
      .limit(maxCounted - count)
      .select(db.raw('1'));
    const row = await db(some.as('some')).count('* as count').first();
    count += Number(row?.count ?? 0);
    if (count >= maxCounted) break;
  }
  return count;
}
