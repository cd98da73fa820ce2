/**
 * Wakes the readers of events when there may be new ones: at once if this process has committed some or another node says
 * so, and within a second otherwise (the command line commits without notifying). Under load it wakes them ten times a
 * second instead of after each commit, because every reader asks the database each time.
 *
 * A reader notes `count()`, reads, and waits for a later count, so that it misses nothing while it reads.
 */
import { type Clock, untilPoll } from '#platform/base/clock.ts';

export type EventSignal = ReturnType<typeof createEventSignal>;

interface EventSignalParts {
  /** Another one than before: something was committed in between. */
  changeToken(): Promise<string>;
  /** The position of the latest event. */
  position(): Promise<number>;
  /** The position may be settled a moment after its commit is visible, so the next poll looks as well. */
  settlesLate: boolean;
  notifyOthers(): void;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

const pollMs = 1000;
const minGapMs = 100;

export function createEventSignal(parts: EventSignalParts) {
  const { changeToken, position, settlesLate, notifyOthers, clock, onError } = parts;
  const waiting = new Set<() => void>();
  /** How often the readers have been woken. */
  let count = 0;
  let knownToken: string | null = null;
  let hadChanged = false;
  let knownPosition = 0;
  let wokenAt = Number.NEGATIVE_INFINITY;
  let isPolling = false;
  let isDelayed = false;

  /** Another node has committed events: wakes the readers here. */
  function notifyLocal(): void {
    const gap = performance.now() - wokenAt;
    if (gap >= minGapMs) wake();
    else if (!isDelayed) setTimeout(wake, minGapMs - gap).unref();
    isDelayed = gap < minGapMs;
  }

  function wake(): void {
    isDelayed = false;
    wokenAt = performance.now();
    count += 1;
    for (const resume of waiting) resume();
  }

  /** While a reader waits, finds the events of processes that do not notify. */
  function poll(): void {
    if (isPolling) return;
    isPolling = true;
    clock.after(untilPoll(clock.now(), pollMs), async () => {
      isPolling = false;
      if (waiting.size === 0) return;
      try {
        await look();
      } catch (error) {
        onError('new events cannot be looked for; retrying in a second', error);
      }
      if (waiting.size > 0) poll();
    });
  }

  async function look(): Promise<void> {
    const token = await changeToken();
    const hasChanged = token !== knownToken;
    if (!hasChanged && !hadChanged) return;
    const now = await position();
    if (now !== knownPosition) notifyLocal();
    knownPosition = now;
    knownToken = token;
    hadChanged = hasChanged && settlesLate;
  }

  /** Resolves when the count is above `seen`, after `ms`, or when `signal` aborts. */
  function wait(seen: number, ms: number, signal: AbortSignal): Promise<void> {
    if (count !== seen || signal.aborted) return Promise.resolve();
    const woken = untilWoken(waiting, signal, (resume) => clock.after(ms, resume));
    poll();
    return woken;
  }

  /** This process has committed events: wakes the readers here and notifies the other nodes. */
  function notify(): void {
    notifyOthers();
    notifyLocal();
  }

  return { notify, notifyLocal, count: () => count, wait };
}

/** Resolves when a member of `waiting` is called, on `signal`, or when the timer runs out that `startTimer` starts. */
function untilWoken(
  waiting: Set<() => void>,
  signal: AbortSignal,
  startTimer: (resume: () => void) => () => void,
): Promise<void> {
  return new Promise((resolve) => {
    const resume = () => {
      cancel();
      waiting.delete(resume);
      signal.removeEventListener('abort', resume);
      resolve();
    };
    const cancel = startTimer(resume);
    waiting.add(resume);
    signal.addEventListener('abort', resume);
  });
}

/** A commit that may add events, and signals so. */
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
