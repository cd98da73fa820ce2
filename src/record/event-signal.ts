/**
 * Tells those who follow events that there may be new ones: at once where this process has committed some, or another
 * node says that it has; after a second at most where nobody says so (the command line). Under load it tells ten times a second and not
 * of each commit, for each time every follower asks the database.
 *
 * A follower notes `rings()`, reads, and waits for the next ring after those: none is missed while it reads.
 */
import type { Clock } from '../base/clock.ts';

export interface Watch {
  /** There may be new events. */
  ring(): void;
  /** The same, said by another node. */
  heard(): void;
  rings(): number;
  /** Until it has rung more often than `seen`, or for so long, or until the signal. */
  wait(seen: number, ms: number, signal: AbortSignal): Promise<void>;
}

export interface WatchParts {
  /** How far events have come. */
  position(): Promise<number>;
  tellOthers(): void;
  clock: Clock;
  onTrouble(what: string, error: unknown): void;
}

const pollMs = 1000;
const leastGapMs = 100;

export function createWatch({ position, tellOthers, clock, onTrouble }: WatchParts): Watch {
  const waiting = new Set<() => void>();
  let rings = 0;
  let known = 0;
  let rangAt = Number.NEGATIVE_INFINITY;
  let isPolling = false;
  let isPutOff = false;

  function heard(): void {
    const gap = performance.now() - rangAt;
    if (gap >= leastGapMs) wake();
    else if (!isPutOff) setTimeout(wake, leastGapMs - gap).unref();
    isPutOff = gap < leastGapMs;
  }

  function wake(): void {
    isPutOff = false;
    rangAt = performance.now();
    rings += 1;
    for (const go of waiting) go();
  }

  /** While somebody waits: what other processes have written. */
  function poll(): void {
    if (isPolling) return;
    isPolling = true;
    clock.after(pollMs, async () => {
      isPolling = false;
      if (waiting.size === 0) return;
      try {
        const now = await position();
        if (now !== known) heard();
        known = now;
      } catch (error) {
        onTrouble('events could not be looked for; trying again', error);
      }
      if (waiting.size > 0) poll();
    });
  }

  return {
    ring() {
      tellOthers();
      heard();
    },
    heard,
    rings: () => rings,
    wait: (seen, ms, signal) =>
      new Promise((resolve) => {
        if (rings !== seen || signal.aborted) return resolve();
        const go = () => {
          cancel();
          waiting.delete(go);
          signal.removeEventListener('abort', go);
          resolve();
        };
        const cancel = clock.after(ms, go);
        waiting.add(go);
        signal.addEventListener('abort', go);
        poll();
      }),
  };
}

/** A commit that may have added events, and says so. */
export function rings<Items, Answer>(
  watch: Pick<Watch, 'ring'>,
  commit: (items: Items) => Promise<Answer>,
): (items: Items) => Promise<Answer> {
  return async (items) => {
    const answer = await commit(items);
    watch.ring();
    return answer;
  };
}
