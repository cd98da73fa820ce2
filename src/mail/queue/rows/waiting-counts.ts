/**
 * How much mail waits for some destinations. Counts in the index of waiting mail by domain, and only up to a limit, so that a
 * view that refreshes itself costs the same however long the queue is.
 */
import { countOf } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { partsOf } from '#platform/database/engine/parts-of.ts';
import { inStage, type Stage } from '#platform/database/tables/unfinished-deliveries.ts';

export const maxCounted = 100_000;

const domainsPerStatement = 500;

/** Keyed by destination; `maxCounted` means that many or more. */
export async function countWaiting(db: Db, destinations: string[]): Promise<Map<string, number>> {
  const domains = await domainsServed(db, destinations);
  const counts = new Map<string, number>();
  for (const destination of destinations)
    counts.set(destination, await countIn(db, 'waiting', domains.get(destination) ?? []));
  return counts;
}

/** All waiting mail, up to `maxCounted`. */
export async function countQueue(db: Db): Promise<number> {
  const some = db('deliveries').where(inStage('waiting')).limit(maxCounted).select(db.raw('1'));
  return countOf(db(some.as('some')));
}

/** More need not be counted: any is a reason to act. */
const maxEnding = 1_000;

/** How much mail expires before `until`, by recipient domain; of the mail that expires first. */
export async function countEnding(db: Db, until: number): Promise<Map<string, number>> {
  const first = db('deliveries')
    .where(inStage('waiting'))
    .where('expires_at', '<', until)
    .orderBy('expires_at')
    .limit(maxEnding)
    .select('domain');
  const rows = await db(first.as('first')).groupBy('domain').select('domain').count('* as count');
  return new Map(rows.map(({ domain, count }) => [String(domain), Number(count)]));
}

/** The count of all of them together. */
export async function countAllWaiting(db: Db, destinations: string[]): Promise<number> {
  return countIn(db, 'waiting', [...(await domainsServed(db, destinations)).values()].flat());
}

/**
 * The domains whose last destination is one of these. A name may be that of a domain whose mail has never had hosts, but not
 * of one that has another destination now: its mail would be counted under two names.
 */
export async function domainsServed(db: Db, destinations: string[]): Promise<Map<string, string[]>> {
  const last = new Map(destinations.map((name) => [name, name]));
  for (const names of partsOf(destinations, domainsPerStatement)) {
    const rows = await db('routes').whereIn('destination', names).orWhereIn('domain', names);
    for (const { domain, destination } of rows) last.set(domain, destination);
  }
  const served = [...last].map(([domain, destination]) => ({ domain, destination }));
  return new Map(
    [...Map.groupBy(served, ({ destination }) => destination)].map(([destination, all]) => [
      destination,
      all.map(({ domain }) => domain),
    ]),
  );
}

export async function countIn(db: Db, stage: Stage, domains: string[]): Promise<number> {
  let count = 0;
  for (const part of partsOf(domains, domainsPerStatement)) {
    const some = db('deliveries')
      .where(inStage(stage))
      .whereIn('domain', part)
      .limit(maxCounted - count)
      .select(db.raw('1'));
    const row = await db(some.as('some')).count('* as count').first();
    count += Number(row?.count ?? 0);
    if (count >= maxCounted) break;
  }
  return count;
}
