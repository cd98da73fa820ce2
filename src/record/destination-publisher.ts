/**
 * Saves the state of destinations for the operator and for other nodes: what has changed since the last time, and every 20 s
 * what has not, so that a reader can tell that a node is gone. A destination at rest has no row, unless something is wrong
 * there; with other nodes, it keeps its row for a minute, so that they learn its last state.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '../base/lru-options.ts';
import type { PublishedState } from '../db/queue/destination-status-rows.ts';
import type { ReadyQueue } from '../queue/ready-queue.ts';
import { createDestinationHealth, type DestinationHealth, throttledMs } from './destination-health.ts';

export interface DestinationPublisherParts {
  saveStates(states: Map<string, PublishedState | null>, now: number): Promise<void>;
  saveRoutes(routes: Map<string, string>): Promise<void>;
  /** Connections to that destination, idle ones included. */
  sockets(destination: string): number;
  /** How long a destination at rest keeps its row. */
  keepMs: number;
}

const heartbeatMs = 20_000;
const maxRoutes = 50_000;
/** Destinations at rest that keep a row because something is wrong there. */
const maxProblemsAtRest = 1_000;

export function createDestinationPublisher(parts: DestinationPublisherParts) {
  /** The state that was saved last, by destination. */
  const written = new Map<string, { text: string; at: number }>();
  const known = new LRUCache<string, string>(lruOptions(maxRoutes));
  const health = createDestinationHealth();
  let unsavedRoutes = new Map<string, string>();

  function changes(readyQueues: ReadyQueue[], now: number): Map<string, PublishedState | null> {
    const states = new Map<string, PublishedState | null>();
    const atRest = new Set(written.keys());
    const troubled = troubledAtRest(readyQueues, health, now);
    for (const readyQueue of readyQueues) {
      const isAtRest = isIdle(readyQueue) && !troubled.has(readyQueue);
      const sockets = parts.sockets(readyQueue.name);
      // Idle connections count toward the destination's limit, so other nodes must know of them.
      const hasSocketsToPublish = parts.keepMs > 0 && sockets > 0;
      if (isAtRest && !hasSocketsToPublish && now >= readyQueue.lastActivityAt + parts.keepMs) continue;
      atRest.delete(readyQueue.name);
      const state = {
        ...stateOf(readyQueue, health, now),
        rests: isAtRest,
        told: readyQueue.ownState(sockets),
      };
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
    /** An attempt has been recorded; `nextAt`: when the mail is tried again, or null. */
    attempted: health.note,
    /** Mail for this domain waits for this destination. */
    route(domain: string, destination: string): void {
      if (known.get(domain) === destination) return;
      known.set(domain, destination);
      unsavedRoutes.set(domain, destination);
    },
    async publish(readyQueues: ReadyQueue[], now: number): Promise<void> {
      const states = changes(readyQueues, now);
      if (states.size > 0) await parts.saveStates(states, now);
      const routes = unsavedRoutes;
      unsavedRoutes = new Map();
      if (routes.size > 0) await parts.saveRoutes(routes);
    },
  };
}

function isIdle(readyQueue: ReadyQueue): boolean {
  return readyQueue.isIdle() && !readyQueue.isCircuitOpen();
}

function troubledAtRest(readyQueues: ReadyQueue[], health: DestinationHealth, now: number): Set<ReadyQueue> {
  const troubled = new Set<ReadyQueue>();
  for (const readyQueue of readyQueues) {
    if (troubled.size >= maxProblemsAtRest) break;
    if (isIdle(readyQueue) && isTroubled(readyQueue, health, now)) troubled.add(readyQueue);
  }
  return troubled;
}

/** It has failed, or asked us to slow down, and mail may wait for its next attempt there. */
function isTroubled({ name, concurrency }: ReadyQueue, health: DestinationHealth, now: number): boolean {
  const isThrottled = concurrency.busySince !== null && now < concurrency.busyAt + throttledMs;
  return isThrottled || health.problem(name, now) !== null;
}

function stateOf(
  readyQueue: ReadyQueue,
  health: DestinationHealth,
  now: number,
): Omit<PublishedState, 'rests' | 'told'> {
  const { circuit, busySince, busyAt } = readyQueue.concurrency;
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
    busyAt,
    lastReply: readyQueue.lastReply?.text ?? null,
    lastReplyAt: readyQueue.lastReply?.at ?? null,
    problem: health.problem(readyQueue.name, now),
    accepted: health.accepted(readyQueue.name, now, busySince),
  };
}
