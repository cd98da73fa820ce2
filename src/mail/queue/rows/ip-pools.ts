/**
 * IP pools (POSTERN_MTA_SOURCES): which pool an organization is assigned to, and which nodes have which pools. On PostgreSQL a
 * node publishes its pools periodically; a row older than a minute is from a node that has stopped. The one node of a SQLite
 * database publishes them when it starts.
 */

import { realOrganizations } from '#accounts/rows/organizations.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';

const freshMs = 60_000;
/** Rows of a node are deleted when it has been gone for this long. */
const keepMs = 24 * 3_600_000;

/** The pool of each organization; one that is absent sends from the pool `default`. */
export async function readPoolAssignments(db: Db): Promise<Map<string, string>> {
  const rows = await db('organizations').whereNotNull('pool').select('id', 'pool');
  return new Map(rows.map(({ id, pool }) => [id, pool]));
}

export async function poolOf(db: Db, orgId: string): Promise<string> {
  const row = await db('organizations').where({ id: orgId }).select('pool').first();
  return row?.pool ?? defaultPool;
}

export async function assignPool(db: Db, id: string, pool: string): Promise<void> {
  await db('organizations')
    .where({ id })
    .update({ pool: pool === defaultPool ? null : pool });
}

/** A subquery for the ids of the organizations whose mail leaves from these pools. */
export function sendersOf(db: Db | Trx, sourcePools: string[]) {
  const senders = db('organizations').whereIn('pool', sourcePools);
  if (sourcePools.includes(defaultPool)) senders.orWhereNull('pool');
  return senders.select('id');
}

export async function publishPools(db: Db, node: string, pools: string[], now: number): Promise<void> {
  const rows = pools.map((pool) => ({ node, pool, at: now }));
  await db('source_pools').insert(rows).onConflict(['node', 'pool']).merge();
  await db('source_pools')
    .where('at', '<', now - keepMs)
    .orWhere((others) => others.where({ node }).whereNotIn('pool', pools))
    .delete();
}

/** Called when the node stops. */
export async function withdrawPools(db: Db, node: string): Promise<void> {
  await db('source_pools').where({ node }).delete();
}

/** The pools of all running nodes, except `node`. */
export async function readPools(db: Db, now: number, node?: string): Promise<Set<string>> {
  const fresh = db('source_pools').distinct();
  if (isPostgres(db)) fresh.where('at', '>=', now - freshMs);
  if (node !== undefined) fresh.whereNot({ node });
  return new Set(await fresh.pluck('pool'));
}

/** Counts organizations by pool. */
export async function countAssigned(db: Db): Promise<Map<string, number>> {
  const rows: { pool: string | null; count: number | string }[] = await realOrganizations(db)
    .groupBy('pool')
    .select('pool')
    .select(db.raw('count(*) as count'));
  return new Map(rows.map(({ pool, count }) => [pool ?? defaultPool, Number(count)]));
}

/** Pools that no running node has, so that mail may wait for them. Empty if no node runs, because then all mail waits anyway. */
export async function readMissing(db: Db, now: number): Promise<string[]> {
  const available = await readPools(db, now);
  if (available.size === 0) return [];
  const assigned: string[] = await db('organizations').whereNotNull('pool').distinct().pluck('pool');
  return [defaultPool, ...assigned].filter((pool) => !available.has(pool));
}

/** How many deliveries for a domain wait for a pool. */
export interface NoEgress {
  pool: string;
  domain: string;
  count: number;
}

export async function readNoEgress(db: Db, missing: string[]): Promise<NoEgress[]> {
  if (missing.length === 0) return [];
  const rows: { pool: string | null; domain: string; count: number | string }[] = await db('deliveries')
    .where(inStage('waiting'))
    .whereIn('org_id', sendersOf(db, missing))
    .join('organizations', 'organizations.id', 'org_id')
    .groupBy('pool', 'domain')
    .select('pool', 'domain')
    .select(db.raw('count(*) as count'));
  return rows.map(({ pool, domain, count }) => ({ pool: pool ?? defaultPool, domain, count: Number(count) }));
}
