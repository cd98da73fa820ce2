/**
 * Decides which mail this node sends: the IP pool that each organization's mail leaves from, whether this node has addresses in it
 * (mail/queue/README.md), and which organizations are paused (accounts/rows/pauses.ts), whose mail no node sends. The database is
 * read once a second and questions are answered from memory, so that no mail costs a look-up. Nodes share the mail of an
 * organization by its own pool, so a stream's pool must be on each node that has that.
 *
 * BUGS: every assignment is read every second, so ten thousand assigned organizations cost each node ten thousand small rows.
 */
import { isRecent } from '#platform/base/clock.ts';
import { defaultPool, streamPoolKey } from '#platform/values/ip-pool.ts';

export interface PoolAssignmentParts {
  sources: { pool: string }[];
  /** What decides it (mail/queue/rows/ip-pools.ts). */
  read(now: number): Promise<{ pools: Map<string, string>; paused: Set<string>; elsewhere: Set<string> }>;
  /** Publishes this node's pools to the other nodes. */
  publish(pools: string[], now: number): Promise<void>;
  /** How often `publish` is called; infinite: once, because no other node can take over. */
  publishIntervalMs: number;
}

export type PoolAssignment = ReturnType<typeof createPoolAssignment>;

/** If no source addresses are configured, the system chooses one, and this node has the pool `default`. */
export const poolsOf = (sources: { pool: string }[]): string[] =>
  sources.length === 0 ? [defaultPool] : [...new Set(sources.map(({ pool }) => pool))];

export function createPoolAssignment(parts: PoolAssignmentParts) {
  const { sources, read, publish, publishIntervalMs } = parts;
  const pools = poolsOf(sources);
  const own = new Set(pools);
  let assignments = new Map<string, string>();
  let paused = new Set<string>();
  /** For each organization, when it was last seen to be paused. */
  const pausedUntil = new Map<string, number>();
  let otherPools: string[] = [];
  let publishedAt = Number.NEGATIVE_INFINITY;

  const poolOf = (orgId: string, stream: string | null = null) =>
    (stream === null ? undefined : assignments.get(streamPoolKey(orgId, stream))) ??
    assignments.get(orgId) ??
    defaultPool;

  return {
    poolOf,
    /** This node has addresses in the organization's pool, and the organization is not paused. */
    isOurs: (orgId: string) => own.has(poolOf(orgId)) && !paused.has(orgId),
    isPaused: (orgId: string) => paused.has(orgId),
    pausedUntil: (orgId: string) => pausedUntil.get(orgId) ?? Number.NEGATIVE_INFINITY,
    anyPaused: () => paused.size > 0,
    /** Pools that only other nodes have. */
    otherPools: () => otherPools,
    /** Reads the database; true if an assignment or a pause has changed since the last time. */
    async refresh(now: number): Promise<boolean> {
      if (!isRecent(publishedAt, now, publishIntervalMs)) {
        await publish(pools, now);
        publishedAt = now;
      }
      const { pools: newAssignments, paused: nowPaused, elsewhere } = await read(now);
      otherPools = [...elsewhere].filter((pool) => !own.has(pool));
      const isSame =
        newAssignments.size === assignments.size &&
        [...newAssignments].every(([orgId, pool]) => assignments.get(orgId) === pool) &&
        nowPaused.size === paused.size &&
        [...nowPaused].every((orgId) => paused.has(orgId));
      // Organizations that have just been resumed were paused until about now.
      for (const orgId of [...paused, ...nowPaused]) pausedUntil.set(orgId, now);
      assignments = newAssignments;
      paused = nowPaused;
      return !isSame;
    },
  };
}
