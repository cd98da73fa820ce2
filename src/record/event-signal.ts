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
  notify(): void;
  /** The same, said by another node. */
  notifyLocal(): void;
  /** How often it has signaled. */
  count(): number;
  /** Until it has rung more often than `seen`, or for so long, or until the signal. */
  wait(seen: number, ms: number, signal: AbortSignal): Promise<void>;
}

export interface EventSignalParts {
  /** How far events have come. */
  position(): Promise<number>;
  notifyOthers(): void;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

const pollMs = 1000;
const minGapMs = 100;

export function createEventSignal({ position, notifyOthers, clock, onError }: EventSignalParts): EventSignal {
  const waiting = new Set<() => void>();
  let count = 0;
  let knownPosition = 0;
  let signaledAt = Number.NEGATIVE_INFINITY;
  let isPolling = false;
  let isDelayed = false;

  function notifyLocal(): void {
    const gap = performance.now() - signaledAt;
    if (gap >= minGapMs) wakeWaiting();
    else if (!isDelayed) setTimeout(wakeWaiting, minGapMs - gap).unref();
    isDelayed = gap < minGapMs;
  }

  function wakeWaiting(): void {
    isDelayed = false;
    signaledAt = performance.now();
    count += 1;
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
        if (now !== knownPosition) notifyLocal();
        knownPosition = now;
      } catch (error) {
        onError('events could not be looked for; trying again', error);
      }
      if (waiting.size > 0) poll();
    });
  }

  return {
    notify() {
      notifyOthers();
      notifyLocal();
    },
    notifyLocal,
    count: () => count,
    wait: (seen, ms, signal) =>
      new Promise((resolve) => {
        if (count !== seen || signal.aborted) return resolve();
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
  eventSignal: Pick<EventSignal, 'notify'>,
  commit: (items: Items) => Promise<Answer>,
): (items: Items) => Promise<Answer> {
  return async (items) => {
    const answer = await commit(items);
    eventSignal.notify();
    return answer;
  };
}
