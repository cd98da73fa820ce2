/**
 * Who may be leased: of what is being accepted, and of what waits in lanes. The rest waits in the database.
 *
 * What is leased at once is bounded in all and for each destination; a few of each domain may be leased before its
 * destination is known. Nothing that is accepted goes before what waits in lanes. Decides and counts; moves nothing.
 */
import type { Clock } from '../base/clock.ts';
import type { PickedBacklog } from './backlogs.ts';
import type { ReadyQueue } from './ready-queue.ts';
import type { ReadyQueues } from './ready-queues.ts';

export interface BacklogClaim {
  readyQueue: ReadyQueue;
  backlog: PickedBacklog;
  limit: number;
}

const maxUnresolved = 4;

export function createLeasePolicy(readyQueues: ReadyQueues, clock: Clock, concurrency: number) {
  const max = 4 * concurrency;
  let leased = 0;
  /** Leased before their destination was known, by domain. */
  const unresolved = new Map<string, number>();
  let unresolvedInAll = 0;

  const mayTakeUnresolved = (domain: string) =>
    unresolvedInAll < concurrency && (unresolved.get(domain) ?? 0) < maxUnresolved;

  return {
    count(by: 1 | -1): void {
      leased += by;
    },
    countUnresolved(domain: string, by: 1 | -1): void {
      unresolvedInAll += by;
      const count = (unresolved.get(domain) ?? 0) + by;
      if (count > 0) unresolved.set(domain, count);
      else unresolved.delete(domain);
    },
    freeLeases: () => max - leased,
    isHalfFree: () => leased < max / 2,
    /** A delivery that is about to be accepted. */
    mayLease(readyQueue: ReadyQueue | null, domain: string): boolean {
      if (leased >= max) return false;
      if (!readyQueue) return mayTakeUnresolved(domain);
      const isNext = readyQueue.backlogs.size === 0 && readyQueue.freeSlots(clock.now()) > 0;
      return isNext && readyQueues.blockedReason(readyQueue, domain) === null;
    },
    /**
     * Lanes whose turn it is, with how many of each; `room` in all, in fair parts, for there may be more lines than
     * room. `isCut`: with more room there were more.
     */
    pickBacklogs(freeLeases: number): { claims: BacklogClaim[]; isCut: boolean } {
      const now = clock.now();
      const eligible = [...readyQueues.active].filter(
        (readyQueue) => readyQueue.backlogs.size > 0 && readyQueue.freeSlots(now) > 0,
      );
      const claims: BacklogClaim[] = [];
      let left = freeLeases;
      for (const [index, readyQueue] of eligible.entries()) {
        if (left <= 0) break;
        const share = Math.min(readyQueue.freeSlots(now), Math.ceil(left / (eligible.length - index)));
        const picked = readyQueue.backlogs.pick(
          share,
          (domain) => readyQueues.suspension(readyQueue, domain) === null,
        );
        const limit = Math.ceil(share / Math.max(picked.length, 1));
        for (const backlog of picked) claims.push({ readyQueue, backlog, limit });
        left -= share;
        readyQueues.moveToBack(readyQueue);
      }
      return { claims, isCut: left <= 0 };
    },
  };
}
