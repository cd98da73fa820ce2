/**
 * The nodes on a PostgreSQL database. Each publishes its version and that it is alive; nodes that send do so about once a second,
 * with the members that they see (mail/queue/cluster/membership.ts). The states of destinations are in destination-status-rows.ts.
 */
import { DatabaseError, type Db, type Trx } from '#platform/database/engine/open.ts';
import { type TokenReader, unnoticed } from '#platform/database/engine/quiet-check.ts';

interface Heartbeat {
  node: string;
  members: string;
  at: number;
}

/** Duration of leases. A node renews its leases while it is alive; when it is gone, they expire after this. */
export const leaseMs = 3 * 60_000;

const keepMs = 3600_000;

/**
 * Two statements, because the first must be committed before the second reads: of two nodes that start at the same time, at
 * least one must see the other.
 */
export async function heartbeat(
  db: Db,
  own: Heartbeat & { version: string },
  ignore: TokenReader['ignore'],
): Promise<Heartbeat[]> {
  await unnoticed(
    db,
    db('nodes')
      .insert({ ...own, sends: true })
      .onConflict('node')
      .merge(),
    ignore,
  );
  return readHeartbeats(db, own.node);
}

/** The heartbeats of the other nodes that send. */
export async function readHeartbeats(db: Db, node: string): Promise<Heartbeat[]> {
  return db('nodes').whereNot({ node }).where({ sends: true }).select('node', 'members', 'at');
}

/** Registers a node that does not send, or not yet. */
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
 * Rejects if another node than `self` is alive. A node upgrades the schema before it registers, so a node that runs on an old
 * schema has another version. A killed node counts as alive until its leases expire.
 */
export async function refuseOtherNodes(
  trx: Trx,
  { self, now }: { self: string | null; now: number },
): Promise<void> {
  const rows: { node: string; at: number; version: string }[] = await trx('nodes')
    // Not one that a clock that was ahead has left in the future.
    .whereBetween('at', [now - leaseMs, now + leaseMs])
    .orderBy('at', 'desc')
    .select('node', 'at', 'version');
  const other = rows.find(({ node }) => node !== self);
  if (!other) return;
  const seconds = Math.max(Math.round((now - other.at) / 1000), 0);
  throw new DatabaseError(
    `the database must be upgraded, and a node of Postern ${other.version} is running on it (${other.node}, last heartbeat ${seconds} s ago): ` +
      `stop all its nodes first; one that was killed counts for ${leaseMs / 60_000} minutes. Nothing was changed`,
  );
}

/** Reads the states of destinations that other nodes have published since `after`; `state` is JSON. */
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

/** Deletes nodes without a heartbeat for an hour. */
export async function forgetNodes(db: Db, now: number): Promise<number> {
  return db('nodes')
    .where('at', '<', now - keepMs)
    .delete();
}
