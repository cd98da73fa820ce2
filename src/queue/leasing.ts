/**
 * Who may be leased: of what is being accepted, of what falls due, of what is parked. The rest waits in the database.
 *
 * What is leased at once is bounded in all and for each destination; a few of each domain may be leased before its
 * destination is known. Nothing goes before what is parked, but a probe may. Decides and counts; moves nothing.
 */
import type { Clock } from '../clock.ts';
import type { Pick } from './lanes.ts';
import type { Line } from './line.ts';
import type { Lines } from './lines.ts';

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

  const mayTakeUnresolved = (domain: string, taken: number) =>
    unresolvedInAll < concurrency && (unresolved.get(domain) ?? 0) + taken < mostUnresolved;

  function mayTake(line: Line, domain: string, taken: number): boolean {
    const now = clock.now();
    if (lines.suspension(line, domain)) return false;
    if (line.isBroken()) return taken === 0 && (line.probe(now) || line.mayStart(now));
    return line.lanes.size === 0 && line.room(now) > taken;
  }

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
    entryOf(line: Line | null, domain: string): 'leased' | 'parked' | 'due' {
      const isFull = leased >= most;
      if (!line) return !isFull && mayTakeUnresolved(domain, 0) ? 'leased' : 'due';
      const isNext = line.lanes.size === 0 && line.room(clock.now()) > 0;
      return !isFull && isNext && lines.obstacle(line, domain) === null ? 'leased' : 'parked';
    },
    /** For one claim of what is due. */
    newPlacing() {
      const taken = new Map<string, number>();
      return ({ domain, expiresAt }: { domain: string; expiresAt: number }): 'take' | 'park' => {
        const line = lines.known(domain);
        const name = line?.name ?? domain;
        const count = taken.get(name) ?? 0;
        // Its time is up: taken for its last attempt, or to be told that there is none.
        const isOver = expiresAt <= clock.now();
        const isTaken = isOver || (line ? mayTake(line, domain, count) : mayTakeUnresolved(domain, count));
        if (isTaken) taken.set(name, count + 1);
        return isTaken ? 'take' : 'park';
      };
    },
    /** Lanes whose turn it is, with how many of each; `room` in all. */
    pickLanes(room: number): LanePick[] {
      const now = clock.now();
      const picks: LanePick[] = [];
      let left = room;
      for (const line of lines.waiting) {
        const share = Math.min(line.room(now), left);
        if (share <= 0 || line.lanes.size === 0) continue;
        const picked = line.lanes.pick(share, (domain) => lines.suspension(line, domain) === null);
        const limit = Math.ceil(share / Math.max(picked.length, 1));
        for (const pick of picked) picks.push({ line, pick, limit });
        left -= share;
      }
      return picks;
    },
  };
}
