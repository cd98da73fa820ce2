/**
 * The nodes of a PostgreSQL, as each publishes itself: that it lives, and its version. Those that send do so about once a
 * second, with whom they count among them (cluster/membership.ts); what they say of destinations is in destination-states.ts.
 */
import { DatabaseError, type Db, type Trx } from '../engine/open.ts';

interface Beat {
  node: string;
  members: string;
  at: number;
}

/** How long what a node has leased waits for it once it is gone; while it lives, its leases are renewed. */
export const leaseMs = 3 * 60_000;

const forgottenMs = 3600_000;

/**
 * Two statements, for the first must be committed before the second looks: of two nodes that start at once one at least
 * has to see the other.
 */
export async function heartbeat(db: Db, own: Beat & { version: string }): Promise<Beat[]> {
  await db('nodes')
    .insert({ ...own, sends: true })
    .onConflict('node')
    .merge();
  return db('nodes').whereNot({ node: own.node }).where({ sends: true }).select('node', 'members', 'at');
}

/** The node lives; it does not send, or not yet. */
export async function register(
  db: Db | Trx,
  own: { node: string; version: string; at: number },
): Promise<void> {
  await db('nodes')
    .insert({ ...own, members: '', sends: false })
    .onConflict('node')
    .merge();
}

/**
 * Rejects if another node than `self` lives. A node brings the schema up to date before it registers, so one that lives on
 * a schema that lacks a step is of another version. One that was killed counts until its leases end.
 */
export async function refuseOtherNodes(
  trx: Trx,
  { self, now }: { self: string | null; now: number },
): Promise<void> {
  if (!(await trx.schema.hasTable('nodes'))) return;
  // Before version 0.6 the table has no column for the version.
  const rows: { node: string; at: number; version?: string | null }[] = await trx('nodes')
    .where('at', '>', now - leaseMs)
    .orderBy('at', 'desc')
    .select('*');
  const [other] = rows.filter(({ node }) => node !== self);
  if (!other) return;
  const version = other.version ? `Postern ${other.version}` : 'an older Postern';
  const seconds = Math.max(Math.round((now - other.at) / 1000), 0);
  throw new DatabaseError(
    `the database must be upgraded, and a node of ${version} is running on it (${other.node}, heard of ${seconds} s ago): ` +
      `stop all its nodes first; one that was killed counts for ${leaseMs / 60_000} minutes. Nothing was changed`,
  );
}

/** What other nodes have published of destinations since then; `state` is JSON. */
export async function readStates(
  db: Db,
  node: string,
  after: number,
): Promise<{ name: string; node: string; state: string; at: number }[]> {
  return db('destinations').whereNot({ node }).where('at', '>=', after).select('name', 'node', 'state', 'at');
}

export async function leave(db: Db, node: string): Promise<void> {
  await db('nodes').where({ node }).delete();
}

/** Those of which nothing was heard for an hour. */
export async function forgetNodes(db: Db, now: number): Promise<number> {
  return db('nodes')
    .where('at', '<', now - forgottenMs)
    .delete();
}
