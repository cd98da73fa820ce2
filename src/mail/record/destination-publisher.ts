/**
 * Saves the state of destinations for the operator and for other nodes: what has changed since the last time, and with
 * several nodes now and then what has not, so that a reader can tell that a node is gone. A destination at rest has no row,
 * unless something is wrong there; with other nodes, it keeps its row for a minute, so that they learn its last state.
 */
import { LRUCache } from 'lru-cache';
import { restingState } from '#mail/queue/peer-state.ts';
import type { ReadyQueue } from '#mail/queue/ready-queue.ts';
import type { DestinationProblem, PublishedState } from '#mail/record/rows/destination-status-rows.ts';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import type { Attempt } from '#platform/values/glossary.ts';
import { DestinationHealth, throttledMs } from './destination-health.ts';

export interface DestinationPublisherParts {
  /** By destination; null: its row is deleted. */
  saveStates(states: Map<string, PublishedState | null>, now: number): Promise<void>;
  /** From recipient domains to their destinations. */
  saveRoutes(routes: Map<string, string>): Promise<void>;
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

/** The state that was saved last, and what it was made of. */
interface Saved {
  state: PublishedState;
  at: number;
  made: Made;
  /** The number of the last look at which it was not at rest. */
  look: number;
}

/** While a destination is healthy, its state changes only with these. */
interface Made {
  /** Another object after each attempt; null: it has not been tried. */
  concurrency: ReadyQueue['concurrency'] | null;
  limit: number;
  waiting: number;
  sockets: number;
}

class SavedStates {
  readonly #saved = new Map<string, Saved>();
  readonly #repeatMs: number;
  #look = 0;

  constructor(repeatMs: number) {
    this.#repeatMs = repeatMs;
  }

  beginLook(): void {
    this.#look += 1;
  }

  /** Most of many destinations are: nothing is made or compared for them. */
  isUntouched(name: string, made: Made, now: number): boolean {
    const last = this.#saved.get(name);
    if (!last || last.state.rests || last.state.problem || last.state.accepted) return false;
    const { concurrency, limit, waiting, sockets } = last.made;
    const isSameMade =
      now < last.at + this.#repeatMs &&
      concurrency === made.concurrency &&
      limit === made.limit &&
      waiting === made.waiting &&
      sockets === made.sockets;
    if (isSameMade) last.look = this.#look;
    return isSameMade;
  }

  /** False: the state is as it was saved. */
  hasChanged(name: string, state: PublishedState, made: Made, now: number): boolean {
    const last = this.#saved.get(name);
    const isKept = last && now < last.at + this.#repeatMs && isSame(state, last.state);
    this.#saved.set(name, { state, at: isKept ? last.at : now, made, look: this.#look });
    return !isKept;
  }

  /** Forgets those that this look has not found, and returns their names. */
  takeRested(): string[] {
    const names: string[] = [];
    for (const [name, { look }] of this.#saved) if (look !== this.#look) names.push(name);
    for (const name of names) this.#saved.delete(name);
    return names;
  }
}

export function createDestinationPublisher(parts: DestinationPublisherParts) {
  const saved = new SavedStates(parts.repeatMs);
  const known = new LRUCache<string, string>(lruOptions(maxRoutes));
  const health = new DestinationHealth();
  let unsavedRoutes = new Map<string, string>();

  function changes(readyQueues: ReadyQueue[], now: number): Map<string, PublishedState | null> {
    const states = new Map<string, PublishedState | null>();
    const troubled = new Set(health.troubled(now).slice(0, maxTroubled));
    const note = (name: string, state: PublishedState, made: Made) => {
      if (saved.hasChanged(name, state, made, now)) states.set(name, state);
    };
    for (const { name } of readyQueues.filter((one) => one.isCircuitOpen())) health.extend(name, now);
    saved.beginLook();
    for (const readyQueue of readyQueues) {
      const { name } = readyQueue;
      const isTroubled = troubled.delete(name) || hasThrottled(readyQueue, now);
      const isAtRest = isResting(readyQueue, now) && !isTroubled;
      const sockets = parts.sockets(name);
      if (isAtRest && !isKept(readyQueue, sockets, now)) continue;
      const made = madeOf(readyQueue, sockets);
      if (!health.knows(name) && saved.isUntouched(name, made, now)) continue;
      const state = stateOf(readyQueue, health, now);
      note(name, { ...state, rests: isAtRest, told: readyQueue.ownState(sockets) }, made);
    }
    const notTried = { concurrency: null, limit: 1, waiting: 0, sockets: 0 };
    for (const name of troubled) {
      const state = { ...noTraffic, problem: health.problem(name, now), rests: true, told: restingState };
      note(name, state, notTried);
    }
    for (const name of saved.takeRested()) states.set(name, null);
    return states;
  }

  /** Idle connections count toward the destination's limit, so other nodes must know of them. */
  function isKept({ lastActivityAt }: ReadyQueue, sockets: number, now: number): boolean {
    return (parts.keepMs > 0 && sockets > 0) || now < lastActivityAt + parts.keepMs;
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
      if (states.size > 0) await parts.saveStates(states, now);
      const routes = unsavedRoutes;
      unsavedRoutes = new Map();
      if (routes.size > 0) await parts.saveRoutes(routes);
    },
  };
}

/** Whether two states differ only in times that move on with the clock while nothing happens. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  for (const [name, value] of Object.entries(one))
    if (name !== 'since' && name !== 'until' && !isSame(value, (other as Record<string, unknown>)[name]))
      return false;
  return true;
}

function madeOf(readyQueue: ReadyQueue, sockets: number): Made {
  const { concurrency, ready } = readyQueue;
  return { concurrency, limit: readyQueue.limit(), waiting: ready.length, sockets };
}

/** Mail that has waited for its turn for longer than anything is remembered of the destination says nothing about it. */
const forgottenMs = 15 * 60_000;

function isResting(readyQueue: ReadyQueue, now: number): boolean {
  const { inFlight, ready, backlogs, concurrency, lastActivityAt } = readyQueue;
  if (readyQueue.isCircuitOpen() || inFlight + ready.length > 0) return false;
  return backlogs.size === 0 || (concurrency.busySince === null && now >= lastActivityAt + forgottenMs);
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
