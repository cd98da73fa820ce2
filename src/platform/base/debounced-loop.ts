/**
 * A job that runs when it is woken, and otherwise at an interval: never twice at once, and never sooner than `debounceMs`
 * after a wake-up, so that many wake-ups make one run. A run that returns true has more to do and is repeated at once.
 * The runs of the interval come together with the polls of other parts (`untilPoll`).
 * The debounce time is real time; the interval follows the clock.
 */
import { type Clock, untilPoll } from './clock.ts';

interface DebouncedLoopParts {
  /** `isWoken`: not only because the interval is over. */
  run(isWoken: boolean): Promise<boolean>;
  debounceMs: number;
  intervalMs: number;
  clock: Clock;
  /** A run failed; the next one comes as usual. */
  onError(error: unknown): void;
}

export function createDebouncedLoop(parts: DebouncedLoopParts) {
  const { run, debounceMs, intervalMs, clock, onError } = parts;
  let isStopped = true;
  let isWoken = false;
  let running: Promise<void> | null = null;
  let debounce: NodeJS.Timeout | undefined;
  let cancelInterval = () => {};

  async function runUntilDone(): Promise<void> {
    const wasWoken = isWoken;
    isWoken = false;
    try {
      while ((await run(wasWoken)) && !isStopped);
    } catch (error) {
      onError(error);
    }
    running = null;
    if (isWoken) wake();
    else if (!isStopped) cancelInterval = clock.after(untilPoll(clock.now(), intervalMs), runNow);
  }

  function runNow(): void {
    debounce = undefined;
    running = runUntilDone();
  }

  function wake(): void {
    isWoken = true;
    if (isStopped || running || debounce) return;
    cancelInterval();
    debounce = setTimeout(runNow, debounceMs);
  }

  return {
    start(): void {
      isStopped = false;
      wake();
    },
    wake,
    /** Resolves when the current run has ended. */
    async stop(): Promise<void> {
      isStopped = true;
      clearTimeout(debounce);
      cancelInterval();
      await running;
    },
  };
}
