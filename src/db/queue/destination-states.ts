/**
 * What the nodes tell the operator, and each other, of destinations: which one serves a recipient domain (`routes`), and
 * how each that is not at rest is doing on each node (`destinations`). Written about once a second, read by the command
 * line and by other nodes (nodes.ts).
 */
import type { Db } from '../engine/open.ts';

export interface PublishedState {
  /** Deliveries under way, and how many are allowed now. */
  connections: number;
  limit: number;
  /** Leased, and waiting in memory for a connection. */
  waiting: number;
  circuit: { since: number; failures: number; nextProbeAt: number; reason: string } | null;
  busySince: number | null;
  busyReply: string | null;
  lastReply: string | null;
  lastReplyAt: number | null;
  /** Nothing goes on there; for other nodes alone. */
  rests: boolean;
  /** What other nodes are told (queue/peer-state.ts). */
  told: object;
}

const rowsAStatement = 200;

/** `states` by destination; null where it has come to rest. */
export async function saveStates(
  db: Db,
  node: string,
  states: Map<string, PublishedState | null>,
  now: number,
): Promise<void> {
  const entries = [...states];
  const kept = entries.filter(([, state]) => state !== null);
  const gone = entries.filter(([, state]) => state === null).map(([name]) => name);
  const rows = kept.map(([name, state]) => ({ name, node, state: JSON.stringify(state), at: now }));
  for (let start = 0; start < rows.length; start += rowsAStatement) {
    const some = rows.slice(start, start + rowsAStatement);
    await db('destinations').insert(some).onConflict(['name', 'node']).merge();
  }
  if (gone.length > 0) await db('destinations').where({ node }).whereIn('name', gone).delete();
}

/** A node that starts knows nothing yet, and what it said before does not hold. */
export async function clearStates(db: Db, node: string): Promise<void> {
  await db('destinations').where({ node }).delete();
}

/** `routes`: recipient domain to destination. */
export async function saveRoutes(db: Db, routes: Map<string, string>): Promise<void> {
  const rows = [...routes].map(([domain, destination]) => ({ domain, destination }));
  for (let start = 0; start < rows.length; start += rowsAStatement) {
    await db('routes')
      .insert(rows.slice(start, start + rowsAStatement))
      .onConflict('domain')
      .merge();
  }
}
