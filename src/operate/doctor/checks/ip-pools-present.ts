/** IP pools: whether some running node has an address in each pool that organizations send from. */
import { poolsOf } from '#mail/queue/cluster/pool-assignment.ts';
import { countAssigned, readPools } from '#mail/queue/rows/ip-pools.ts';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import { type FindingDraft, failure, ok, skipped } from '#operate/doctor/finding.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';

export async function checkIpPools({ config, openDb, now }: DoctorContext): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  if (db === null) return skipped('not known: the database cannot be read');
  const wanted = await countAssigned(db).catch(() => null);
  if (wanted === null) return skipped('not known: the database is not up to date');
  // The settings given here count too: a server that is started next will have them.
  const present = new Set([...poolsOf(config.mtaSources), ...(await readPools(db, now()))]);
  const missing = [...wanted].filter(([pool]) => !present.has(pool));
  const names = [...present].sort().join(', ');
  if (missing.length === 0) return ok(names);
  const described = missing.map(([pool, count]) => `${senders(count)} from ${pool}`).join(', ');
  const example = missing[0]![0] === defaultPool ? '192.0.2.10' : `192.0.2.10@${missing[0]![0]}`;
  return failure(
    `${described}, but no running node has an address in that pool; the pools with addresses are ${names}`,
    `add an address to POSTERN_MTA_SOURCES of a node (such as ${example}) and restart it, or assign another pool with postern org pool ORG NAME, or postern stream set NAME --pool POOL for a stream`,
  );
}

function senders(count: number): string {
  return count === 1 ? '1 organization or stream sends' : `${count} organizations or streams send`;
}
