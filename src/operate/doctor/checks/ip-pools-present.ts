/** Pools of source addresses: whether every pool that organizations send from is one that some node has. */
import { countAssigned, readPools } from '../../../db/queue/ip-pools.ts';
import { defaultPool } from '../../../mail/ip-pool.ts';
import { type FindingDraft, failure, ok, skipped } from '../finding.ts';
import type { OpenDb } from './database.ts';

/** `own`: by the settings given here, which a server that starts next will have. */
export async function checkIpPools(openDb: OpenDb, own: string[], now: number): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  if (db === null) return skipped('not known: the database cannot be read');
  const wanted = await countAssigned(db).catch(() => null);
  if (wanted === null) return skipped('not known: the database is not up to date');
  const there = new Set([...own, ...(await readPools(db, now))]);
  const missing = [...wanted].filter(([pool]) => !there.has(pool));
  const names = [...there].sort().join(', ');
  if (missing.length === 0) return ok(names);
  const said = missing.map(([pool, count]) => `${organizations(count)} from ${pool}`).join(', ');
  const example = missing[0]![0] === defaultPool ? '192.0.2.10' : `192.0.2.10@${missing[0]![0]}`;
  return failure(
    `${said}, but no running node has an address in that pool; the pools with addresses are ${names}`,
    `add an address to POSTERN_MTA_SOURCES of a node (such as ${example}) and restart it, or assign another pool with postern org pool ORG NAME`,
  );
}

function organizations(count: number): string {
  return count === 1 ? '1 organization sends' : `${count} organizations send`;
}
