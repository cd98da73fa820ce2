/**
 * Does something when it is called for, and now and then without: never twice at once, and never sooner than a gap
 * after it was called for, so that many calls are one. A beat that answers true has more to do, and follows at once.
 * The gap is of real time; what nobody called for follows the clock.
 */
import type { Clock } from './clock.ts';

export interface DebouncedLoop {
  start(): void;
  wake(): void;
  /** Resolves when the beat under way has ended. */
  stop(): Promise<void>;
}

export interface DebouncedLoopParts {
  beat(): Promise<boolean>;
  gapMs: number;
  intervalMs: number;
  clock: Clock;
  /** A beat that failed; there will be others. */
  onError(error: unknown): void;
}

export function createDebouncedLoop({
  beat,
  gapMs,
  intervalMs,
  clock,
  onError,
}: DebouncedLoopParts): DebouncedLoop {
  let isStopped = true;
  let isWanted = false;
  let running: Promise<void> | null = null;
  let gap: NodeJS.Timeout | undefined;
  let cancel = () => {};

  async function run(): Promise<void> {
    isWanted = false;
    const begunAt = clock.now();
    try {
      while ((await beat()) && !isStopped);
    } catch (error) {
      onError(error);
    }
    running = null;
    const wait = begunAt + intervalMs - clock.now();
    if (isWanted || wait <= 0) wake();
    else if (!isStopped) cancel = clock.after(wait, wake);
  }

  function wake(): void {
    isWanted = true;
    if (isStopped || running || gap) return;
    cancel();
    gap = setTimeout(() => {
      gap = undefined;
      running = run();
    }, gapMs);
  }

  return {
    start() {
      isStopped = false;
      wake();
    },
    wake,
    async stop() {
      isStopped = true;
      clearTimeout(gap);
      cancel();
      await running;
    },
  };
}
