/**
 * The queue's view of the other nodes that send: this node's share of each destination's limits, and what the other
 * nodes publish about a destination. mail/queue/cluster/peers.ts implements it; `noPeers` is for a node that sends alone.
 */
import type { PeerState } from './peer-state.ts';

/** This node's share of one destination's limits. */
export interface Share {
  /** This node's part of `total`. `turn` shifts the order of the nodes, so that they take turns. */
  of(total: number, turn?: number): number;
  /** False if other nodes may have taken over this node's share, because they have not heard from it. */
  isTrusted(now: number): boolean;
  /** Since when the share has its present size. */
  readonly since: number;
}

/** Decides which mail this node sends; mail/queue/cluster/pool-assignment.ts implements it. */
export interface Ownership {
  /** Whether this node has source addresses for the organization's mail. All other mail is left to nodes that have. */
  isOurs(orgId: string): boolean;
  /** The operator has paused the organization: its mail waits and does not age. Then `isOurs` is false too. */
  isPaused(orgId: string): boolean;
  /** When the organization was last seen to be paused; minus infinity: never since this node started. */
  pausedUntil(orgId: string): number;
}

export interface Peers {
  share(name: string): Share;
  /** The states that the other nodes publish about this destination. */
  states(name: string): PeerState[];
  /** Other nodes are counted: they must hear of this one each second, and their silence is measured. */
  hasOthers(): boolean;
  /** Publishes this node's heartbeat and reads those of the others. Rejects if the database is away; then nothing changes. */
  exchange(): Promise<void>;
  /** Tells the other nodes that this one has stopped. */
  leave(): Promise<void>;
}

/** The share of a node that sends alone. */
export const whole: Share = { of: (total) => total, isTrusted: () => true, since: Number.NEGATIVE_INFINITY };

export const noPeers: Peers = {
  share: () => whole,
  states: () => [],
  hasOthers: () => false,
  exchange: async () => {},
  leave: async () => {},
};
