/**
 * Who may be leased: of what is being accepted, and of what waits in lanes. The rest waits in the database.
 *
 * What is leased at once is bounded in all and for each destination; a few of each domain may be leased before its
 * destination is known. Nothing that is accepted goes before what waits in lanes. Decides and counts; moves nothing.
 */
import type { Clock } from '../base/clock.ts';
import type { Pick } from './backlogs.ts';
import type { ReadyQueue } from './ready-queue.ts';
import type { ReadyQueues } from './ready-queues.ts';

export interface BacklogPick {
  line: ReadyQueue;
  pick: Pick;
  limit: number;
}

const maxUnresolved = 4;

export function createLeasePolicy(lines: ReadyQueues, clock: Clock, concurrency: number) {
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
    room: () => max - leased,
    hasMuchRoom: () => leased < max / 2,
    /** A delivery that is about to be accepted. */
    mayEnter(line: ReadyQueue | null, domain: string): boolean {
      if (leased >= max) return false;
      if (!line) return mayTakeUnresolved(domain);
      const isNext = line.lanes.size === 0 && line.room(clock.now()) > 0;
      return isNext && lines.obstacle(line, domain) === null;
    },
    /**
     * Lanes whose turn it is, with how many of each; `room` in all, in fair parts, for there may be more lines than
     * room. `isCut`: with more room there were more.
     */
    pickLanes(room: number): { picks: BacklogPick[]; isCut: boolean } {
      const now = clock.now();
      const open = [...lines.waiting].filter((line) => line.lanes.size > 0 && line.room(now) > 0);
      const picks: BacklogPick[] = [];
      let left = room;
      for (const [index, line] of open.entries()) {
        if (left <= 0) break;
        const share = Math.min(line.room(now), Math.ceil(left / (open.length - index)));
        const picked = line.lanes.pick(share, (domain) => lines.suspension(line, domain) === null);
        const limit = Math.ceil(share / Math.max(picked.length, 1));
        for (const pick of picked) picks.push({ line, pick, limit });
        left -= share;
        lines.passTurn(line);
      }
      return { picks, isCut: left <= 0 };
    },
  };
}
