/**
 * The ready queues of all destinations that this node sends to, and what blocks each of them: the operator's suspensions
 * and the queue's own limits.
 */
import type { Clock } from '../base/clock.ts';
import type { Destination } from '../mail/destination-shape.ts';
import type { Backlog } from './backlogs.ts';
import { ReadyQueue } from './ready-queue.ts';
import { noPeers, type Peers } from './share.ts';

export interface Suspension {
  /** A recipient domain or a destination's name. */
  destination: string;
  reason: string;
  until: number;
}

export interface ReadyQueuesParts {
  /** The destination of a domain; null if it has to be looked up first. */
  destinationOf(domain: string): Destination | null;
  /** Mail for this domain waits for this destination. The operator's view shows it. */
  onWaiting(domain: string, destination: string): void;
  peers?: Pick<Peers, 'share' | 'states'>;
  clock: Clock;
}

/** Backlogs that other nodes serve are remembered this long, in case this node gets a share. */
const keepBacklogsMs = 30_000;
/** Above this number, idle ready queues are forgotten with what they have learned. */
const maxReadyQueues = 5_000;

export class ReadyQueues {
  /** Those with backlogs or ready deliveries; nothing else needs a look. Served in turn, from the front. */
  readonly active = new Set<ReadyQueue>();
  readonly #parts: ReadyQueuesParts;
  readonly #peers: Pick<Peers, 'share' | 'states'>;
  readonly #clock: Clock;
  readonly #byName = new Map<string, ReadyQueue>();
  #suspensions = new Map<string, Suspension>();
  #clearedAt: number;

  constructor(parts: ReadyQueuesParts) {
    this.#parts = parts;
    this.#peers = parts.peers ?? noPeers;
    this.#clock = parts.clock;
    this.#clearedAt = parts.clock.now();
  }

  of(destination: Destination): ReadyQueue {
    const known = this.#byName.get(destination.name);
    if (known) {
      known.setShape(destination.shape);
      return known;
    }
    const readyQueue = new ReadyQueue(destination, this.#peers.share(destination.name));
    this.#byName.set(destination.name, readyQueue);
    readyQueue.mergePeerStates(this.#peers.states(destination.name));
    return readyQueue;
  }

  find(domain: string): ReadyQueue | null {
    const destination = this.#parts.destinationOf(domain);
    return destination && this.of(destination);
  }

  all(): Iterable<ReadyQueue> {
    return this.#byName.values();
  }

  addBacklog(readyQueue: ReadyQueue, { domain, orgId }: Backlog): void {
    readyQueue.backlogs.add({ domain, orgId });
    this.active.add(readyQueue);
    this.#parts.onWaiting(domain, readyQueue.name);
  }

  /** It has been served: the others come first now. */
  moveToBack(readyQueue: ReadyQueue): void {
    this.active.delete(readyQueue);
    this.active.add(readyQueue);
  }

  suspend(suspensions: Suspension[]): void {
    this.#suspensions = new Map(suspensions.map((one) => [one.destination, one]));
  }

  suspension(readyQueue: ReadyQueue, domain: string): Suspension | null {
    const found = this.#suspensions.get(readyQueue.name) ?? this.#suspensions.get(domain);
    return found && found.until > this.#clock.now() ? found : null;
  }

  /** Why mail of this domain cannot start within the next seconds; null if it can. */
  blockedReason(readyQueue: ReadyQueue, domain: string): string | null {
    const suspension = this.suspension(readyQueue, domain);
    if (suspension) return `suspended by the operator: ${suspension.reason}`;
    return readyQueue.blockedReason(this.#clock.now());
  }

  /** Takes over what other nodes have published, and now and then forgets the backlogs that they serve. */
  mergePeerStates(): void {
    for (const readyQueue of this.#byName.values()) {
      readyQueue.mergePeerStates(this.#peers.states(readyQueue.name));
    }
    const now = this.#clock.now();
    if (Math.abs(now - this.#clearedAt) < keepBacklogsMs) return;
    this.#clearedAt = now;
    for (const readyQueue of this.#byName.values()) {
      if (readyQueue.hasNoShare() && !readyQueue.isCircuitOpen()) readyQueue.backlogs.clear();
    }
  }

  areIdle(): boolean {
    return this.active.size === 0 && [...this.#byName.values()].every((readyQueue) => readyQueue.isIdle());
  }

  forgetIdle(): void {
    const idle = [...this.#byName.values()].filter((readyQueue) => readyQueue.isIdle());
    const tooMany = Math.max(this.#byName.size - maxReadyQueues, 0);
    for (const readyQueue of idle.slice(0, tooMany)) this.#byName.delete(readyQueue.name);
  }
}
