/**
 * The other nodes that send: this node's share of each destination, and what they publish about it. About once a second
 * (with each poll) this node publishes a heartbeat and reads what is new; membership.ts and mail/queue/peer-state.ts decide
 * what follows from it.
 *
 * A report counts for a minute, and only while its node is alive; a node repeats what is still true every twenty seconds.
 */

import type { PeerState } from '#mail/queue/peer-state.ts';
import type { Peers } from '#mail/queue/share.ts';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import { type Heartbeat, NodeMembership } from './membership.ts';

/** The state that a node has published about a destination, at a time by its own clock. */
interface PeerReport {
  name: string;
  node: string;
  at: number;
  state: PeerState;
}

export interface PeersParts {
  node: string;
  /** This node's part of each destination's limits, even if its share is smaller (membership.ts). */
  min: number;
  /** Commits this node's heartbeat, and only then reads those of the others. */
  exchangeHeartbeats(members: string, at: number): Promise<Heartbeat[]>;
  readHeartbeats(): Promise<Heartbeat[]>;
  /** The states that the other nodes have published about destinations at `after` or later. */
  readReports(after: number): Promise<PeerReport[]>;
  leave(): Promise<void>;
  /** The shares have changed. */
  onChange(): void;
  clock: Clock;
}

/**
 * How often a node that counts no other publishes its heartbeat. A node that starts finds it, and counts this one for ten
 * seconds; this one reads its heartbeat within a second, answers at once, and publishes each second from then on.
 */
const aloneIntervalMs = 20_000;
const freshMs = 60_000;

export function createPeers(parts: PeersParts): Peers {
  const { clock } = parts;
  const membership = new NodeMembership(parts.node, parts.min);
  /** Keyed by destination, then by node. */
  const known = new Map<string, Map<string, { at: number; readAt: number; state: PeerState }>>();
  /** Of the others, when their reports were last read (membership.ts); null: all that are fresh are to be read. */
  let heardAt: number | null = null;
  let publishedAt = Number.NEGATIVE_INFINITY;

  async function readReports(): Promise<void> {
    const now = clock.now();
    // A node publishes its states before its heartbeat, by the same clock: unless that goes back, none is missed, and few are read
    // twice.
    const isKnown = heardAt !== null && membership.heardAt >= heardAt;
    const after = isKnown ? heardAt! : now - freshMs;
    for (const { name, node, at, state } of await parts.readReports(after)) {
      const reports = known.get(name) ?? new Map();
      if (reports.get(node)?.at !== at) reports.set(node, { at, readAt: now, state });
      known.set(name, reports);
    }
    heardAt = membership.heardAt;
  }

  function forgetStale(): void {
    const now = clock.now();
    const live = new Set(membership.others);
    for (const [name, reports] of known) {
      for (const [node, report] of reports)
        if (!live.has(node) || !isRecent(report.readAt, now, freshMs)) reports.delete(node);
      if (reports.size === 0) known.delete(name);
    }
  }

  return {
    share: (name) => membership.share(name),
    states: (name) => [...(known.get(name)?.values() ?? [])].map(({ state }) => state),
    hasOthers: () => membership.others.length > 0,
    async exchange() {
      const begunAt = clock.now();
      let hasChanged = false;
      const mayBeSilent = membership.others.length === 0 && isRecent(publishedAt, begunAt, aloneIntervalMs);
      if (mayBeSilent) hasChanged = membership.update(await parts.readHeartbeats(), begunAt, clock.now());
      if (!mayBeSilent || membership.others.length > 0) {
        const heartbeats = await parts.exchangeHeartbeats(membership.members, begunAt);
        publishedAt = begunAt;
        if (membership.update(heartbeats, begunAt, clock.now())) hasChanged = true;
      }
      if (hasChanged || membership.others.length === 0) heardAt = null;
      if (membership.others.length > 0) await readReports();
      forgetStale();
      if (hasChanged) parts.onChange();
    },
    leave: parts.leave,
  };
}
