/**
 * IP pools (POSTERN_MTA_SOURCES): which pool an organization is assigned to, and which nodes have which pools. On PostgreSQL a
 * node publishes its pools periodically; a row older than a minute is from a node that has stopped. The one node of a SQLite
 * database publishes them when it starts.
 */

import { realOrganizations } from '#accounts/rows/organizations.ts';
import { returnPathsVersion } from '#accounts/rows/return-paths.ts';
import { findStream } from '#accounts/rows/streams.ts';
import { query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { type TokenReader, unnoticed } from '#platform/database/engine/quiet-check.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';

const freshMs = 60_000;
/** Rows of a node are deleted when it has been gone for this long. */
const keepMs = 24 * 3_600_000;

export interface Assigned {
  /** The pool of each organization and, by `streamPoolKey`, of each stream; one that is absent has none of its own. */
  pools: Map<string, string>;
  /** The organizations that are paused (accounts/rows/pauses.ts). */
  paused: Set<string>;
  /** The pools of the other running nodes. */
  elsewhere: Set<string>;
  /** Another one than before: the domains that use their own return path have changed. */
  returnPaths: string;
}

/** In one statement, because every node asks each second in which something has changed. */
export async function readAssigned(db: Db, node: string, now: number): Promise<Assigned> {
  const rows = await query<{ kind: keyof Assigned; id: string; pool: string }>(
    db,
    `select 'pools' as kind, cast(id as text) as id, pool from organizations where pool is not null
     union all select 'pools', org_id || ' ' || name, pool from streams where pool is not null
     union all select 'paused', cast(id as text), null from organizations where paused_at is not null
     union all select 'elsewhere', node, pool from source_pools where node <> ? and at >= ?
     union all ${returnPathsVersion('returnPaths')}`,
    [node, isPostgres(db) ? now - freshMs : 0],
  );
  const of = (wanted: keyof Assigned) => rows.filter(({ kind }) => kind === wanted);
  return {
    pools: new Map(of('pools').map(({ id, pool }) => [id, pool])),
    paused: new Set(of('paused').map(({ id }) => id)),
    elsewhere: new Set(of('elsewhere').map(({ pool }) => pool)),
    returnPaths: of('returnPaths').map(({ id, pool }) => `${id} ${pool}`)[0]!,
  };
}

export async function poolOf(db: Db, orgId: string, stream: string | null = null): Promise<string> {
  const ofStream = stream === null ? null : await findStream(db, orgId, stream);
  if (ofStream?.pool) return ofStream.pool;
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

/** Repeated, it changes only a time, which no poll of this node has to see. */
export async function publishPools(
  db: Db,
  node: string,
  pools: string[],
  now: number,
  ignore: TokenReader['ignore'] = () => {},
): Promise<void> {
  const rows = pools.map((pool) => ({ node, pool, at: now }));
  await unnoticed(db, db('source_pools').insert(rows).onConflict(['node', 'pool']).merge(), ignore);
  await db('source_pools')
    .where('at', '<', now - keepMs)
    .orWhere((others) => others.where({ node }).whereNotIn('pool', pools))
    .delete();
}

/** Called when the node stops. */
export async function withdrawPools(db: Db, node: string): Promise<void> {
  await db('source_pools').where({ node }).delete();
}

/** The pools of all running nodes. */
export async function readPools(db: Db, now: number): Promise<Set<string>> {
  const fresh = db('source_pools').distinct();
  if (isPostgres(db)) fresh.where('at', '>=', now - freshMs);
  return new Set(await fresh.pluck('pool'));
}

/** Counts organizations and streams by pool. */
export async function countAssigned(db: Db): Promise<Map<string, number>> {
  const rows: { pool: string | null; count: number | string }[] = await realOrganizations(db)
    .groupBy('pool')
    .select('pool')
    .select(db.raw('count(*) as count'));
  const streams: typeof rows = await db('streams')
    .whereNotNull('pool')
    .groupBy('pool')
    .select('pool')
    .select(db.raw('count(*) as count'));
  const counts = new Map<string, number>();
  for (const { pool, count } of [...rows, ...streams])
    counts.set(pool ?? defaultPool, (counts.get(pool ?? defaultPool) ?? 0) + Number(count));
  return counts;
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
