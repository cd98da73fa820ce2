/**
 * Keeps the view of destinations up to date that the operator has, and other nodes: writes what has changed since the
 * last time, and now and then what has not, so that a reader can tell a node that is gone. At rest a destination has no
 * entry; where there may be other nodes, it has one for a minute more, so that they hear how it ended.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '../base/lru-options.ts';
import type { PublishedState } from '../db/queue/destination-states.ts';
import type { ReadyQueue } from '../queue/ready-queue.ts';

export interface DestinationPublisherParts {
  saveStates(states: Map<string, PublishedState | null>, now: number): Promise<void>;
  saveRoutes(routes: Map<string, string>): Promise<void>;
  /** Connections to that destination, idle ones too. */
  sockets(destination: string): number;
  /** How long what is at rest keeps its entry. */
  keepMs: number;
}

const heartbeatMs = 20_000;
const maxRoutes = 50_000;

export function createDestinationPublisher(parts: DestinationPublisherParts) {
  /** What was written last, by destination. */
  const written = new Map<string, { text: string; at: number }>();
  const known = new LRUCache<string, string>(lruOptions(maxRoutes));
  let fresh = new Map<string, string>();

  function news(lines: Iterable<ReadyQueue>, now: number): Map<string, PublishedState | null> {
    const states = new Map<string, PublishedState | null>();
    const atRest = new Set(written.keys());
    for (const line of lines) {
      const rests = line.isIdle() && !line.isBroken();
      const sockets = parts.sockets(line.name);
      // Idle connections count among the destination's: other nodes have to know of them.
      const isToldOf = parts.keepMs > 0 && sockets > 0;
      if (rests && !isToldOf && now >= line.movedAt + parts.keepMs) continue;
      atRest.delete(line.name);
      const state = { ...stateOf(line), rests, told: line.tell(sockets) };
      const text = JSON.stringify(state);
      const last = written.get(line.name);
      if (last?.text === text && now < last.at + heartbeatMs) continue;
      written.set(line.name, { text, at: now });
      states.set(line.name, state);
    }
    for (const name of atRest) {
      written.delete(name);
      states.set(name, null);
    }
    return states;
  }

  return {
    /** Mail of this domain waits, and for whom. */
    route(domain: string, destination: string): void {
      if (known.get(domain) === destination) return;
      known.set(domain, destination);
      fresh.set(domain, destination);
    },
    async publish(lines: Iterable<ReadyQueue>, now: number): Promise<void> {
      const states = news(lines, now);
      if (states.size > 0) await parts.saveStates(states, now);
      const routes = fresh;
      fresh = new Map();
      if (routes.size > 0) await parts.saveRoutes(routes);
    },
  };
}

function stateOf(line: ReadyQueue): Omit<PublishedState, 'rests' | 'told'> {
  const { circuit, busySince } = line.gauge;
  return {
    connections: line.inFlight,
    limit: line.limit(),
    waiting: line.hand.length,
    circuit: circuit && {
      since: circuit.since,
      failures: circuit.failures,
      nextProbeAt: circuit.nextProbeAt,
      reason: circuit.reason,
    },
    busySince,
    busyReply: line.busyReply,
    lastReply: line.lastReply?.text ?? null,
    lastReplyAt: line.lastReply?.at ?? null,
  };
}
