/**
 * All destinations that this node deals with, each as its line, and what stands in the way of each: the operator's
 * suspensions, and circuits that are open.
 */
import type { Clock } from '../base/clock.ts';
import type { Destination } from '../mail/destination-shape.ts';
import type { Backlog } from './backlogs.ts';
import { createReadyQueue, type ReadyQueue } from './ready-queue.ts';
import { noPeers, type Peers } from './share.ts';

export interface Suspension {
  /** A recipient domain or a destination's name. */
  destination: string;
  reason: string;
  until: number;
}

export interface ReadyQueuesParts {
  /** The destination of a domain, where it is known now. */
  destinationOf(domain: string): Destination | null;
  /** Mail for this domain waits: the operator is told where its mail goes. */
  onWaiting(domain: string, destination: string): void;
  peers?: Pick<Peers, 'share' | 'states'>;
  clock: Clock;
}

/** So long a line keeps the names of lanes that are others' to serve, in case it becomes its own. */
const keepBacklogsMs = 30_000;
/** What was learned of more destinations than these is forgotten, where they are at rest. */
const maxReadyQueues = 5_000;

export function createReadyQueues({ destinationOf, onWaiting, peers = noPeers, clock }: ReadyQueuesParts) {
  const readyQueues = new Map<string, ReadyQueue>();
  /** Lines with lanes or deliveries at hand: the others need no look. */
  const active = new Set<ReadyQueue>();
  let clearedAt = clock.now();
  let suspensions = new Map<string, Suspension>();

  function of(destination: Destination): ReadyQueue {
    const known = readyQueues.get(destination.name);
    const readyQueue = known ?? createReadyQueue(destination, peers.share(destination.name));
    readyQueue.setShape(destination.shape);
    if (known) return readyQueue;
    readyQueues.set(destination.name, readyQueue);
    readyQueue.mergePeerStates(peers.states(destination.name));
    return readyQueue;
  }

  function suspension(readyQueue: ReadyQueue, domain: string): Suspension | null {
    const found = suspensions.get(readyQueue.name) ?? suspensions.get(domain);
    return found && found.until > clock.now() ? found : null;
  }

  return {
    active,
    /** It has been served; the others come first now. */
    moveToBack(readyQueue: ReadyQueue): void {
      active.delete(readyQueue);
      active.add(readyQueue);
    },
    of,
    find(domain: string): ReadyQueue | null {
      const destination = destinationOf(domain);
      return destination && of(destination);
    },
    suspension,
    /** What is known to stand in the way of a domain's mail, in words; null: nothing. */
    blockedReason(readyQueue: ReadyQueue, domain: string): string | null {
      const suspended = suspension(readyQueue, domain);
      if (suspended) return `suspended by the operator: ${suspended.reason}`;
      return readyQueue.blockedReason(clock.now());
    },
    /** What other nodes say. Lanes that are theirs to serve they find by themselves. */
    mergePeerStates(): void {
      for (const readyQueue of readyQueues.values())
        readyQueue.mergePeerStates(peers.states(readyQueue.name));
      const now = clock.now();
      if (Math.abs(now - clearedAt) < keepBacklogsMs) return;
      clearedAt = now;
      for (const readyQueue of readyQueues.values())
        if (readyQueue.hasNoShare() && !readyQueue.isCircuitOpen()) readyQueue.backlogs.clear();
    },
    suspend(list: Suspension[]): void {
      suspensions = new Map(list.map((one) => [one.destination, one]));
    },
    addBacklog(readyQueue: ReadyQueue, { domain, orgId }: Backlog): void {
      readyQueue.backlogs.add({ domain, orgId });
      active.add(readyQueue);
      onWaiting(domain, readyQueue.name);
    },
    all: (): Iterable<ReadyQueue> => readyQueues.values(),
    forgetIdle(): void {
      const idle = [...readyQueues.values()].filter((readyQueue) => readyQueue.isIdle());
      const tooMany = Math.max(readyQueues.size - maxReadyQueues, 0);
      for (const readyQueue of idle.slice(0, tooMany)) readyQueues.delete(readyQueue.name);
    },
  };
}

export type ReadyQueues = ReturnType<typeof createReadyQueues>;
