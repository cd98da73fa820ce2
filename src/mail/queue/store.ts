/** The queue's statements as it needs them; server/delivery.ts makes them of those in mail/queue/rows/. */
import type { Backlog, Delivery } from '#platform/values/glossary.ts';
import type { DueScannerParts } from './due-scanner.ts';
import type { ReadyQueue } from './ready-queue.ts';
import type { Suspension } from './ready-queues.ts';

export interface Store extends Pick<DueScannerParts, 'findDue' | 'listBacklogs' | 'dueAmong'> {
  /** When the first mail falls due after `after`, is at its maximum age, and starts as scheduled; infinite if there is none. */
  firstTimes(after: number): Promise<Record<'dueAt' | 'expiresAt' | 'scheduledAt', number>>;
  /** Leases due deliveries of these backlogs, the longest due first. */
  claimBacklogs(now: number, backlogs: (Backlog & { limit: number })[]): Promise<Delivery[]>;
  /** Leases deliveries that have reached their maximum age. */
  claimExpired(now: number, limit: number): Promise<Delivery[]>;
  /** Starts scheduled mail that is due: its backlogs, and when the next one is due. */
  startScheduled(now: number): Promise<{ backlogs: Backlog[]; nextAt: number | null }>;
  /** Leases mail that a rule of the operator bounces, with the reason. */
  claimRefused(now: number, limit: number): Promise<{ delivery: Delivery; reason: string }[]>;
  releaseLeases(deliveries: Delivery[]): Promise<void>;
  /** Whether anything was committed since the last call, and when time alone makes something due after `since`. */
  lookFor(since: number): Promise<{ hasChanged: boolean; nextAt(): Promise<number> }>;
  suspensions(now: number): Promise<Suspension[]>;
  /** Reads the pool assignments and the paused organizations; true if they have changed. */
  readPools(now: number): Promise<boolean>;
  /** Saves what the operator and the other nodes see of the destinations. */
  publish(readyQueues: Iterable<ReadyQueue>, now: number): Promise<void>;
  /** The ids of the leases that this node still had, and so were renewed. */
  renewLeases(ids: string[]): Promise<Set<string>>;
  freeOrphans(): Promise<void>;
  /** Leases what an earlier process of this node, or a node whose leases have run out, was sending. */
  takeBack(which: 'own' | 'expired'): Promise<Delivery[]>;
}
