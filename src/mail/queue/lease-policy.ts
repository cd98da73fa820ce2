/**
 * Decides which deliveries may be leased, of those that are being accepted and of those that wait in backlogs.
 *
 * The number of leases is bounded in all and for each destination; a few of each domain may be leased before its
 * destination is known. Nothing that is accepted goes before what is known to wait for its destination. Decides and counts;
 * leases nothing.
 */
import type { Clock } from '#platform/base/clock.ts';
import { CountedMap } from '#platform/base/limits/counted-map.ts';
import type { Backlog } from '#platform/values/glossary.ts';
import type { PickedBacklog } from './backlogs.ts';
import type { ReadyQueue } from './ready-queue.ts';
import type { ReadyQueues } from './ready-queues.ts';

/** At most `limit` deliveries of this backlog are to be leased. */
export interface BacklogClaim {
  readyQueue: ReadyQueue;
  backlog: PickedBacklog;
  limit: number;
}

/** Deliveries that are leased in one commit. */
export const maxPerClaim = 200;
/** Leases of one domain before its destination is known. */
const maxUnresolved = 4;

export class LeasePolicy {
  readonly #readyQueues: ReadyQueues;
  readonly #clock: Clock;
  readonly #maxUnresolvedInAll: number;
  readonly #max: number;
  #leased = 0;
  /** Leased before their destination was known, by domain. */
  readonly #unresolved = new CountedMap();

  constructor(readyQueues: ReadyQueues, clock: Clock, concurrency: number) {
    this.#readyQueues = readyQueues;
    this.#clock = clock;
    this.#maxUnresolvedInAll = concurrency;
    this.#max = 4 * concurrency;
  }

  countLeased(by: 1 | -1): void {
    this.#leased += by;
  }

  /** Keeps a slot for a delivery that may be leased; the function that is returned ends that. */
  reserve(readyQueue: ReadyQueue | null, domain: string): () => void {
    if (readyQueue) readyQueue.reserve();
    else this.#unresolved.add(domain, 1);
    return () => {
      if (readyQueue) readyQueue.cancelReservation();
      else this.#unresolved.add(domain, -1);
    };
  }

  /**
   * How many more deliveries may be leased. Sends that were admitted together can exceed the limit for a moment: that leaves no
   * room, never less than none, which a scan would take for a claim that found all it asked for, and begin again at once.
   */
  freeLeases(): number {
    return Math.max(this.#max - this.#leased, 0);
  }

  isHalfFree(): boolean {
    return this.#leased < this.#max / 2;
  }

  /** Whether a delivery that is about to be accepted may be leased. `readyQueue`: null if its destination is unknown. */
  mayLease(readyQueue: ReadyQueue | null, domain: string): boolean {
    if (this.#leased >= this.#max) return false;
    if (!readyQueue)
      return this.#unresolved.total < this.#maxUnresolvedInAll && this.#unresolved.of(domain) < maxUnresolved;
    const isNext = readyQueue.backlogs.size === 0 && readyQueue.freeSlots(this.#clock.now()) > 0;
    return isNext && this.#readyQueues.blockedReason(readyQueue, domain) === null;
  }

  /**
   * The backlogs whose turn it is, with how many deliveries of each. `freeLeases` in all are shared out fairly, because
   * there may be more ready queues than that: then the first ones get one each, and go to the back. `isCut`: more could be
   * claimed with more of them.
   */
  pickBacklogs(freeLeases: number): { claims: BacklogClaim[]; isCut: boolean } {
    const now = this.#clock.now();
    const eligible: ReadyQueue[] = [];
    for (const readyQueue of this.#readyQueues.active) {
      if (eligible.length >= freeLeases) break;
      if (this.#readyQueues.mayClaim(readyQueue, now)) eligible.push(readyQueue);
    }
    const claims: BacklogClaim[] = [];
    let left = freeLeases;
    for (const [index, readyQueue] of eligible.entries()) {
      if (left <= 0) break;
      const share = Math.min(readyQueue.freeSlots(now), Math.ceil(left / (eligible.length - index)));
      const isOpen = (domain: string) => this.#readyQueues.suspension(readyQueue, domain) === null;
      const handOver = (backlog: Backlog) => this.#readyQueues.handOver(readyQueue, backlog);
      const picked = readyQueue.backlogs.pick(share, isOpen, handOver);
      const limit = Math.ceil(share / Math.max(picked.length, 1));
      for (const backlog of picked) claims.push({ readyQueue, backlog, limit });
      left -= share;
      this.#readyQueues.moveToBack(readyQueue);
    }
    return { claims, isCut: left <= 0 };
  }
}
