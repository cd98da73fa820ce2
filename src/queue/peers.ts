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
interface Tale {
  name: string;
  node: string;
  at: number;
  told: PeerState;
}

export interface Peers {
  share(name: string): Share;
  /** What the others say of it. */
  told(name: string): PeerState[];
  /** Publishes and reads. Rejects where the database is away: nothing has changed then. */
  meet(): Promise<void>;
  /** This node is gone from now on. */
  leave(): Promise<void>;
}

/** Where nobody else can send. */
export const noPeers: Peers = {
  share: () => whole,
  told: () => [],
  meet: async () => {},
  leave: async () => {},
};

export interface PeersParts {
  node: string;
  /** What of each destination's limits it has in any case (membership.ts). */
  min: number;
  /** Commits the beat, and then reads those of the others. */
  beat(members: string, at: number): Promise<Heartbeat[]>;
  /** What the others have published of destinations at `after` or later. */
  tales(after: number): Promise<Tale[]>;
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
  const roster = createMembership(parts.node, parts.min);
  /** By destination, and by node. */
  const known = new Map<string, Map<string, { at: number; readAt: number; told: PeerState }>>();
  let readAt: number | null = null;

  async function listen(): Promise<void> {
    const now = clock.now();
    const after = readAt === null ? now - freshMs : Math.min(readAt, now) - overlapMs;
    for (const { name, node, at, told } of await parts.tales(after)) {
      const tales = known.get(name) ?? new Map();
      if (tales.get(node)?.at !== at) tales.set(node, { at, readAt: now, told });
      known.set(name, tales);
    }
    readAt = now;
  }

  function forget(): void {
    const now = clock.now();
    const live = new Set(roster.others);
    for (const [name, tales] of known) {
      for (const [node, tale] of tales)
        if (!live.has(node) || Math.abs(now - tale.readAt) >= freshMs) tales.delete(node);
      if (tales.size === 0) known.delete(name);
    }
  }

  return {
    share: roster.share,
    told: (name) => [...(known.get(name)?.values() ?? [])].map(({ told }) => told),
    async meet() {
      const begunAt = clock.now();
      const beats = await parts.beat(roster.members, begunAt);
      const hasChanged = roster.hear(beats, begunAt, clock.now());
      if (roster.others.length > 0) await listen();
      else readAt = null;
      forget();
      if (hasChanged) parts.onChange();
    },
    leave: parts.leave,
  };
}
