/**
 * The nodes that send, as each publishes itself about once a second: that it lives, and whom it counts among them
 * (queue/roster.ts); and what they say of destinations (destinations.ts).
 */
import type { Db } from './open.ts';

interface Beat {
  node: string;
  members: string;
  at: number;
}

const forgottenMs = 3600_000;

/**
 * Two statements, for the first must be committed before the second looks: of two nodes that start at once one at least
 * has to see the other.
 */
export async function beat(db: Db, own: Beat): Promise<Beat[]> {
  await db('nodes').insert(own).onConflict('node').merge();
  return db('nodes').whereNot({ node: own.node }).select('node', 'members', 'at');
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
