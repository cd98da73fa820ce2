/**
 * Pools of source addresses (POSTERN_MTA_SOURCES): which organization is pinned to which, and which nodes have which.
 * A node says once and again what it has; what is older than a minute was said by one that is gone.
 */
import { defaultPool } from '../../mail/ip-pool.ts';
import type { Db, Trx } from '../engine/open.ts';
import { inPool } from './unfinished-deliveries.ts';

const freshMs = 60_000;
/** A node that has been gone for so long may have gone for good. */
const forgottenMs = 24 * 3_600_000;

/** By organization. Who is not there sends from the pool `default`. */
export async function readPoolAssignments(db: Db): Promise<Map<string, string>> {
  const rows = await db('organizations').whereNotNull('pool').select('id', 'pool');
  return new Map(rows.map(({ id, pool }) => [id, pool]));
}

/** The pool that one organization sends from. */
export async function poolOf(db: Db, orgId: string): Promise<string> {
  const row = await db('organizations').where({ id: orgId }).select('pool').first();
  return row?.pool ?? defaultPool;
}

export async function assignPool(db: Db, id: string, pool: string): Promise<void> {
  await db('organizations')
    .where({ id })
    .update({ pool: pool === defaultPool ? null : pool });
}

/** The ids of the organizations whose mail leaves from these pools, to be looked for in. */
export function sendersOf(db: Db | Trx, sourcePools: string[]) {
  const senders = db('organizations').whereIn('pool', sourcePools);
  if (sourcePools.includes(defaultPool)) senders.orWhereNull('pool');
  return senders.select('id');
}

export async function publishPools(db: Db, node: string, pools: string[], now: number): Promise<void> {
  const rows = pools.map((pool) => ({ node, pool, at: now }));
  await db('source_pools').insert(rows).onConflict(['node', 'pool']).merge();
  await db('source_pools')
    .where('at', '<', now - forgottenMs)
    .orWhere((others) => others.where({ node }).whereNotIn('pool', pools))
    .delete();
}

/** The node stops, and sends from none. */
export async function withdrawPools(db: Db, node: string): Promise<void> {
  await db('source_pools').where({ node }).delete();
}

/** The pools of all nodes that run; of the others than `node`, where one is named. */
export async function readPools(db: Db, now: number, node?: string): Promise<Set<string>> {
  const fresh = db('source_pools')
    .where('at', '>=', now - freshMs)
    .distinct();
  if (node !== undefined) fresh.whereNot({ node });
  return new Set(await fresh.pluck('pool'));
}

/** Organizations that send from a pool, by its name. */
export async function countAssigned(db: Db): Promise<Map<string, number>> {
  const rows: { pool: string | null; count: number | string }[] = await db('organizations')
    .groupBy('pool')
    .select('pool')
    .select(db.raw('count(*) as count'));
  return new Map(rows.map(({ pool, count }) => [pool ?? defaultPool, Number(count)]));
}

/** Pools that no running node has, and mail may wait for. None where no node runs: then all mail waits, for that. */
export async function readMissing(db: Db, now: number): Promise<string[]> {
  const there = await readPools(db, now);
  if (there.size === 0) return [];
  const pinned: string[] = await db('organizations').whereNotNull('pool').distinct().pluck('pool');
  return [defaultPool, ...pinned].filter((pool) => !there.has(pool));
}

/** What waits in one domain for a pool. */
export interface NoEgress {
  pool: string;
  domain: string;
  count: number;
}

export async function readNoEgress(db: Db, missing: string[]): Promise<NoEgress[]> {
  if (missing.length === 0) return [];
  const rows: { pool: string | null; domain: string; count: number | string }[] = await db('deliveries')
    .where(inPool('waiting'))
    .whereIn('org_id', sendersOf(db, missing))
    .join('organizations', 'organizations.id', 'org_id')
    .groupBy('pool', 'domain')
    .select('pool', 'domain')
    .select(db.raw('count(*) as count'));
  return rows.map(({ pool, domain, count }) => ({ pool: pool ?? defaultPool, domain, count: Number(count) }));
}
