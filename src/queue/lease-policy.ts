/**
 * Who may be leased: of what is being accepted, and of what waits in lanes. The rest waits in the database.
 *
 * What is leased at once is bounded in all and for each destination; a few of each domain may be leased before its
 * destination is known. Nothing that is accepted goes before what waits in lanes. Decides and counts; moves nothing.
 */
import type { Clock } from '../base/clock.ts';
import type { Pick } from './backlogs.ts';
import type { Line } from './ready-queue.ts';
import type { Lines } from './ready-queues.ts';

export interface LanePick {
  line: Line;
  pick: Pick;
  limit: number;
}

const mostUnresolved = 4;

export function createLeasing(lines: Lines, clock: Clock, concurrency: number) {
  const most = 4 * concurrency;
  let leased = 0;
  /** Leased before their destination was known, by domain. */
  const unresolved = new Map<string, number>();
  let unresolvedInAll = 0;

  const mayTakeUnresolved = (domain: string) =>
    unresolvedInAll < concurrency && (unresolved.get(domain) ?? 0) < mostUnresolved;

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
    room: () => most - leased,
    hasMuchRoom: () => leased < most / 2,
    /** A delivery that is about to be accepted. */
    mayEnter(line: Line | null, domain: string): boolean {
      if (leased >= most) return false;
      if (!line) return mayTakeUnresolved(domain);
      const isNext = line.lanes.size === 0 && line.room(clock.now()) > 0;
      return isNext && lines.obstacle(line, domain) === null;
    },
    /**
     * Lanes whose turn it is, with how many of each; `room` in all, in fair parts, for there may be more lines than
     * room. `isCut`: with more room there were more.
     */
    pickLanes(room: number): { picks: LanePick[]; isCut: boolean } {
      const now = clock.now();
      const open = [...lines.waiting].filter((line) => line.lanes.size > 0 && line.room(now) > 0);
      const picks: LanePick[] = [];
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
