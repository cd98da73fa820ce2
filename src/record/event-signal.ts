/**
 * Tells those who follow events that there may be new ones: at once where this process has committed some, or another
 * node says that it has; after a second at most where nobody says so (the command line). Under load it tells ten times a second and not
 * of each commit, for each time every follower asks the database.
 *
 * A follower notes `rings()`, reads, and waits for the next ring after those: none is missed while it reads.
 */
import type { Clock } from '../base/clock.ts';

export interface EventSignal {
  /** There may be new events. */
  ring(): void;
  /** The same, said by another node. */
  heard(): void;
  signalsAfter(): number;
  /** Until it has rung more often than `seen`, or for so long, or until the signal. */
  wait(seen: number, ms: number, signal: AbortSignal): Promise<void>;
}

export interface EventSignalParts {
  /** How far events have come. */
  position(): Promise<number>;
  tellOthers(): void;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

const pollMs = 1000;
const minGapMs = 100;

export function createEventSignal({ position, tellOthers, clock, onError }: EventSignalParts): EventSignal {
  const waiting = new Set<() => void>();
  let signalsAfter = 0;
  let known = 0;
  let rangAt = Number.NEGATIVE_INFINITY;
  let isPolling = false;
  let isPutOff = false;

  function heard(): void {
    const gap = performance.now() - rangAt;
    if (gap >= minGapMs) wake();
    else if (!isPutOff) setTimeout(wake, minGapMs - gap).unref();
    isPutOff = gap < minGapMs;
  }

  function wake(): void {
    isPutOff = false;
    rangAt = performance.now();
    signalsAfter += 1;
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
        onError('events could not be looked for; trying again', error);
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
    signalsAfter: () => signalsAfter,
    wait: (seen, ms, signal) =>
      new Promise((resolve) => {
        if (signalsAfter !== seen || signal.aborted) return resolve();
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
export function signalsAfter<Items, Answer>(
  watch: Pick<EventSignal, 'ring'>,
  commit: (items: Items) => Promise<Answer>,
): (items: Items) => Promise<Answer> {
  return async (items) => {
    const answer = await commit(items);
    watch.ring();
    return answer;
  };
}
