/**
 * All destinations that this node deals with, each as its line, and what stands in the way of each: the operator's
 * suspensions, and circuits that are open.
 */
import type { Clock } from '../base/clock.ts';
import type { Destination } from '../mail/destination-shape.ts';
import type { Backlog } from './backlogs.ts';
import { noPeers, type Peers } from './peers.ts';
import { createReadyQueue, type ReadyQueue } from './ready-queue.ts';

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
  neighbours?: Pick<Peers, 'share' | 'told'>;
  clock: Clock;
}

/** So long a line keeps the names of lanes that are others' to serve, in case it becomes its own. */
const keepLanesMs = 30_000;
/** What was learned of more destinations than these is forgotten, where they are at rest. */
const maxLines = 5_000;

export function createReadyQueues({
  destinationOf,
  onWaiting,
  neighbours = noPeers,
  clock,
}: ReadyQueuesParts) {
  const lines = new Map<string, ReadyQueue>();
  /** Lines with lanes or deliveries at hand: the others need no look. */
  const waiting = new Set<ReadyQueue>();
  let clearedAt = clock.now();
  let suspensions = new Map<string, Suspension>();

  function of(destination: Destination): ReadyQueue {
    const known = lines.get(destination.name);
    const line = known ?? createReadyQueue(destination, neighbours.share(destination.name));
    line.reshape(destination.shape);
    if (known) return line;
    lines.set(destination.name, line);
    line.hear(neighbours.told(destination.name));
    return line;
  }

  function suspension(line: ReadyQueue, domain: string): Suspension | null {
    const found = suspensions.get(line.name) ?? suspensions.get(domain);
    return found && found.until > clock.now() ? found : null;
  }

  return {
    waiting,
    /** It has been served; the others come first now. */
    passTurn(line: ReadyQueue): void {
      waiting.delete(line);
      waiting.add(line);
    },
    of,
    known(domain: string): ReadyQueue | null {
      const destination = destinationOf(domain);
      return destination && of(destination);
    },
    suspension,
    /** What is known to stand in the way of a domain's mail, in words; null: nothing. */
    obstacle(line: ReadyQueue, domain: string): string | null {
      const suspended = suspension(line, domain);
      if (suspended) return `suspended by the operator: ${suspended.reason}`;
      return line.rest(clock.now());
    },
    /** What other nodes say. Lanes that are theirs to serve they find by themselves. */
    hear(): void {
      for (const line of lines.values()) line.hear(neighbours.told(line.name));
      const now = clock.now();
      if (Math.abs(now - clearedAt) < keepLanesMs) return;
      clearedAt = now;
      for (const line of lines.values()) if (line.isElsewhere() && !line.isBroken()) line.lanes.clear();
    },
    suspend(list: Suspension[]): void {
      suspensions = new Map(list.map((one) => [one.destination, one]));
    },
    addLane(line: ReadyQueue, { domain, orgId }: Backlog): void {
      line.lanes.add({ domain, orgId });
      waiting.add(line);
      onWaiting(domain, line.name);
    },
    all: (): Iterable<ReadyQueue> => lines.values(),
    forgetIdle(): void {
      const idle = [...lines.values()].filter((line) => line.isIdle());
      const tooMany = Math.max(lines.size - maxLines, 0);
      for (const line of idle.slice(0, tooMany)) lines.delete(line.name);
    },
  };
}

export type ReadyQueues = ReturnType<typeof createReadyQueues>;
