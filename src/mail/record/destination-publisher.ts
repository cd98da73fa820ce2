/**
 * Saves the state of destinations for the operator and for other nodes: what has changed since the last time, and with
 * several nodes now and then what has not, so that a reader can tell that a node is gone. A destination at rest has no row,
 * unless something is wrong there; with other nodes, it keeps its row for a minute, so that they learn its last state.
 */
import { LRUCache } from 'lru-cache';
import { restingState } from '#mail/queue/peer-state.ts';
import type { ReadyQueue } from '#mail/queue/ready-queue.ts';
import {
  type DestinationProblem,
  type PublishedState,
  saveRoutes,
  saveStates,
} from '#mail/record/rows/destination-status-rows.ts';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Attempt } from '#platform/values/glossary.ts';
import { DestinationHealth, throttledMs } from './destination-health.ts';

export interface DestinationPublisherParts {
  db: Db;
  node: string;
  /** Connections to that destination, idle ones included. */
  sockets(destination: string): number;
  /** How long a destination at rest keeps its row. */
  keepMs: number;
  /** How often an unchanged state is saved again. */
  repeatMs: number;
}

const maxRoutes = 50_000;
/** Destinations that keep a row at rest because something is wrong there. */
const maxTroubled = 1_000;

export type DestinationPublisher = ReturnType<typeof createDestinationPublisher>;

export function createDestinationPublisher(parts: DestinationPublisherParts) {
  /** The state that was saved last, by destination. */
  const written = new Map<string, { text: string; at: number }>();
  const known = new LRUCache<string, string>(lruOptions(maxRoutes));
  const health = new DestinationHealth();
  let unsavedRoutes = new Map<string, string>();

  function changes(readyQueues: ReadyQueue[], now: number): Map<string, PublishedState | null> {
    const states = new Map<string, PublishedState | null>();
    const atRest = new Set(written.keys());
    const troubled = new Set(health.troubled(now).slice(0, maxTroubled));
    const note = (name: string, state: PublishedState) => {
      atRest.delete(name);
      const text = JSON.stringify(state, withoutTimes);
      const last = written.get(name);
      if (last?.text === text && now < last.at + parts.repeatMs) return;
      written.set(name, { text, at: now });
      states.set(name, state);
    };
    for (const readyQueue of readyQueues) {
      const { name } = readyQueue;
      if (readyQueue.isCircuitOpen()) health.extend(name, now);
      const isTroubled = troubled.delete(name) || hasThrottled(readyQueue, now);
      const isAtRest = isIdle(readyQueue) && !isTroubled;
      const sockets = parts.sockets(name);
      // Idle connections count toward the destination's limit, so other nodes must know of them.
      const hasSocketsToPublish = parts.keepMs > 0 && sockets > 0;
      if (isAtRest && !hasSocketsToPublish && now >= readyQueue.lastActivityAt + parts.keepMs) continue;
      const state = stateOf(readyQueue, health, now);
      note(name, { ...state, rests: isAtRest, told: readyQueue.ownState(sockets) });
    }
    for (const name of troubled)
      note(name, { ...noTraffic, problem: health.problem(name, now), rests: true, told: restingState });
    for (const name of atRest) {
      written.delete(name);
      states.set(name, null);
    }
    return states;
  }

  return {
    /** An attempt has been recorded; `nextAt`: when the mail is tried again, or null. */
    attempted(domain: string, attempt: Attempt, nextAt: number | null): void {
      health.note(attempt, nextAt);
      if (attempt.destination !== domain) health.noteResolved(domain);
    },
    restore: (problems: Map<string, DestinationProblem>, now: number) => health.restore(problems, now),
    /** Mail for this domain waits for this destination. */
    route(domain: string, destination: string): void {
      if (known.get(domain) === destination) return;
      known.set(domain, destination);
      unsavedRoutes.set(domain, destination);
    },
    async publish(readyQueues: ReadyQueue[], now: number): Promise<void> {
      const states = changes(readyQueues, now);
      if (states.size > 0) await saveStates(parts.db, parts.node, states, now);
      const routes = unsavedRoutes;
      unsavedRoutes = new Map();
      if (routes.size > 0) await saveRoutes(parts.db, routes);
    },
  };
}

/** These move on with the clock, while nothing happens. */
function withoutTimes(name: string, value: unknown): unknown {
  return name === 'since' || name === 'until' ? undefined : value;
}

function isIdle(readyQueue: ReadyQueue): boolean {
  return readyQueue.isIdle() && !readyQueue.isCircuitOpen();
}

/** It has asked us to slow down, and mail may wait for its next attempt there. */
function hasThrottled({ concurrency }: ReadyQueue, now: number): boolean {
  return concurrency.busySince !== null && now < concurrency.busyAt + throttledMs;
}

/**
 * The state of a destination in trouble whose mail waits for its next attempt, and that this node has not tried since its
 * start.
 */
const noTraffic = {
  connections: 0,
  limit: 1,
  waiting: 0,
  circuit: null,
  busySince: null,
  lastReply: null,
  lastReplyAt: null,
};

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
