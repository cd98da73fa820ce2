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
  let unsavedRoutes = new Map<string, string>();

  function changes(readyQueues: Iterable<ReadyQueue>, now: number): Map<string, PublishedState | null> {
    const states = new Map<string, PublishedState | null>();
    const atRest = new Set(written.keys());
    for (const readyQueue of readyQueues) {
      const isAtRest = readyQueue.isIdle() && !readyQueue.isCircuitOpen();
      const sockets = parts.sockets(readyQueue.name);
      // Idle connections count among the destination's: other nodes have to know of them.
      const hasSocketsToPublish = parts.keepMs > 0 && sockets > 0;
      if (isAtRest && !hasSocketsToPublish && now >= readyQueue.lastActivityAt + parts.keepMs) continue;
      atRest.delete(readyQueue.name);
      const state = { ...stateOf(readyQueue), rests: isAtRest, told: readyQueue.ownState(sockets) };
      const text = JSON.stringify(state);
      const last = written.get(readyQueue.name);
      if (last?.text === text && now < last.at + heartbeatMs) continue;
      written.set(readyQueue.name, { text, at: now });
      states.set(readyQueue.name, state);
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
      unsavedRoutes.set(domain, destination);
    },
    async publish(readyQueues: Iterable<ReadyQueue>, now: number): Promise<void> {
      const states = changes(readyQueues, now);
      if (states.size > 0) await parts.saveStates(states, now);
      const routes = unsavedRoutes;
      unsavedRoutes = new Map();
      if (routes.size > 0) await parts.saveRoutes(routes);
    },
  };
}

function stateOf(readyQueue: ReadyQueue): Omit<PublishedState, 'rests' | 'told'> {
  const { circuit, busySince } = readyQueue.concurrency;
  return {
    connections: readyQueue.inFlight,
    limit: readyQueue.limit(),
    waiting: readyQueue.ready.length,
    circuit: circuit && {
      since: circuit.since,
      failures: circuit.failures,
      nextProbeAt: circuit.nextProbeAt,
      reason: circuit.reason,
    },
    busySince,
    busyReply: readyQueue.busyReply,
    lastReply: readyQueue.lastReply?.text ?? null,
    lastReplyAt: readyQueue.lastReply?.at ?? null,
  };
}
