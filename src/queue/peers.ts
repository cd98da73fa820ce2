/**
 * The other nodes that send: what each destination's part is, and what they say of it. About once a second (the runner's
 * tick) this node publishes that it lives and reads what is new; membership.ts and peer-state.ts say what follows from it.
 *
 * What a node said counts while it is alive, and for a minute: of what goes on there it speaks every twenty seconds.
 */
import type { Clock } from '../base/clock.ts';
import { createMembership, type Heartbeat, type Share, whole } from './membership.ts';
import type { PeerState } from './peer-state.ts';

/** What a node has published of a destination, at a time by its own clock. */
interface PeerReport {
  name: string;
  node: string;
  at: number;
  state: PeerState;
}

export interface Peers {
  share(name: string): Share;
  /** What the others say of it. */
  states(name: string): PeerState[];
  /** Publishes and reads. Rejects where the database is away: nothing has changed then. */
  exchange(): Promise<void>;
  /** This node is gone from now on. */
  leave(): Promise<void>;
}

/** Where nobody else can send. */
export const noPeers: Peers = {
  share: () => whole,
  states: () => [],
  exchange: async () => {},
  leave: async () => {},
};

export interface PeersParts {
  node: string;
  /** What of each destination's limits it has in any case (membership.ts). */
  min: number;
  /** Commits the beat, and then reads those of the others. */
  exchangeHeartbeats(members: string, at: number): Promise<Heartbeat[]>;
  /** What the others have published of destinations at `after` or later. */
  readReports(after: number): Promise<PeerReport[]>;
  leave(): Promise<void>;
  /** The parts have changed. */
  onChange(): void;
  clock: Clock;
}

const freshMs = 60_000;
/** What is committed a little after its time, or by a clock that is a little behind, is seen by another look. */
const overlapMs = 10_000;

export function createPeers(parts: PeersParts): Peers {
  const { clock } = parts;
  const membership = createMembership(parts.node, parts.min);
  /** By destination, and by node. */
  const known = new Map<string, Map<string, { at: number; readAt: number; state: PeerState }>>();
  let readAt: number | null = null;

  async function readPeerStates(): Promise<void> {
    const now = clock.now();
    const after = readAt === null ? now - freshMs : Math.min(readAt, now) - overlapMs;
    for (const { name, node, at, state } of await parts.readReports(after)) {
      const reports = known.get(name) ?? new Map();
      if (reports.get(node)?.at !== at) reports.set(node, { at, readAt: now, state });
      known.set(name, reports);
    }
    readAt = now;
  }

  function forgetStale(): void {
    const now = clock.now();
    const live = new Set(membership.others);
    for (const [name, reports] of known) {
      for (const [node, report] of reports)
        if (!live.has(node) || Math.abs(now - report.readAt) >= freshMs) reports.delete(node);
      if (reports.size === 0) known.delete(name);
    }
  }

  return {
    share: membership.share,
    states: (name) => [...(known.get(name)?.values() ?? [])].map(({ state }) => state),
    async exchange() {
      const begunAt = clock.now();
      const heartbeats = await parts.exchangeHeartbeats(membership.members, begunAt);
      const hasChanged = membership.update(heartbeats, begunAt, clock.now());
      if (membership.others.length > 0) await readPeerStates();
      else readAt = null;
      forgetStale();
      if (hasChanged) parts.onChange();
    },
    leave: parts.leave,
  };
}
