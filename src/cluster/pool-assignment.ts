/**
 * Whose mail this node sends: which pool of source addresses each organization's mail leaves from, and whether this node
 * has it (queue/README.md); and which organizations are paused (db/accounts/pauses.ts), whose mail no node sends.
 * What the database says of it is read once a second and answered from memory, so that no mail costs a look-up; what
 * this node has is said there now and then.
 *
 * BUGS: every pin is read every second, so ten thousand pinned organizations cost each node ten thousand small rows.
 */
import { defaultPool } from '../mail/ip-pool.ts';

export interface PoolAssignmentParts {
  sources: { pool: string }[];
  /** By organization; who is not there is pinned to none. */
  readAssignments(): Promise<Map<string, string>>;
  /** The organizations that are paused. */
  readPaused(): Promise<Set<string>>;
  /** Tells other nodes. */
  publish(pools: string[], now: number): Promise<void>;
  /** The pools of the other nodes that run. */
  readOthers(now: number): Promise<Set<string>>;
}

export interface PoolAssignment {
  poolOf(orgId: string): string;
  /** This node has addresses of its pool, and it is not paused. */
  isOurs(orgId: string): boolean;
  isPaused(orgId: string): boolean;
  /** Whether any organization is paused. */
  anyPaused(): boolean;
  /** Pools that others have, and this node has not. */
  elsewhere(): string[];
  /** Whether any organization has been pinned otherwise, paused or resumed since the last time. */
  refresh(now: number): Promise<boolean>;
}

/** Less than what is taken for a sign of life. */
const publishIntervalMs = 20_000;

/** Without addresses of the operator's, the system's choice is the pool `default`. */
export const poolsOf = (sources: { pool: string }[]): string[] =>
  sources.length === 0 ? [defaultPool] : [...new Set(sources.map(({ pool }) => pool))];

export function createPoolAssignment(parts: PoolAssignmentParts): PoolAssignment {
  const { sources, readAssignments, readPaused, publish, readOthers } = parts;
  const pools = poolsOf(sources);
  const own = new Set(pools);
  let assignments = new Map<string, string>();
  let paused = new Set<string>();
  let others: string[] = [];
  let publishedAt = Number.NEGATIVE_INFINITY;

  const poolOf = (orgId: string) => assignments.get(orgId) ?? defaultPool;

  return {
    poolOf,
    isOurs: (orgId) => own.has(poolOf(orgId)) && !paused.has(orgId),
    isPaused: (orgId) => paused.has(orgId),
    anyPaused: () => paused.size > 0,
    elsewhere: () => others,
    async refresh(now) {
      if (Math.abs(now - publishedAt) >= publishIntervalMs) {
        await publish(pools, now);
        publishedAt = now;
      }
      others = [...(await readOthers(now))].filter((pool) => !own.has(pool));
      const newAssignments = await readAssignments();
      const nowPaused = await readPaused();
      const isSame =
        newAssignments.size === assignments.size &&
        [...newAssignments].every(([orgId, pool]) => assignments.get(orgId) === pool) &&
        nowPaused.size === paused.size &&
        [...nowPaused].every((orgId) => paused.has(orgId));
      assignments = newAssignments;
      paused = nowPaused;
      return !isSame;
    },
  };
}
