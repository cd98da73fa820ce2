/**
 * What takes long and goes on in the background, one at a time, while pages look at how far it has come. The last one is
 * kept, in memory: after a restart there is none.
 */
import type { Clock } from '../base/clock.ts';

interface Run<Asked, Progress, Result> {
  asked: Asked;
  startedAt: number;
  progress: Progress | null;
  /** Null: it goes on. */
  endedAt: number | null;
  /** Null while it goes on, and where it failed. */
  result: Result | null;
}

export interface BackgroundJobs<Asked, Progress, Result> {
  /** The one that goes on, or the last. */
  last(): Run<Asked, Progress, Result> | null;
  /** False: one goes on already, and nothing is begun. */
  start(asked: Asked): boolean;
  /** Waits until nothing goes on, or so long. */
  ended(timeoutMs: number): Promise<void>;
  /** Breaks off what goes on, and begins nothing any more; resolves when nothing goes on. */
  stop(): Promise<void>;
}

export function createBackgroundJobs<Asked, Progress, Result>(
  clock: Clock,
  work: (asked: Asked, onProgress: (progress: Progress) => void, signal: AbortSignal) => Promise<Result>,
  onFailure: (error: unknown) => void,
): BackgroundJobs<Asked, Progress, Result> {
  let last: Run<Asked, Progress, Result> | null = null;
  let working: Promise<void> = Promise.resolve();
  const stopping = new AbortController();

  async function carryOut(run: Run<Asked, Progress, Result>): Promise<void> {
    try {
      const onProgress = (progress: Progress) => {
        run.progress = progress;
      };
      run.result = await work(run.asked, onProgress, stopping.signal);
    } catch (error) {
      onFailure(error);
    }
    run.endedAt = clock.now();
  }

  return {
    last: () => last,
    start(asked) {
      if (last?.endedAt === null || stopping.signal.aborted) return false;
      last = { asked, startedAt: clock.now(), progress: null, endedAt: null, result: null };
      working = carryOut(last);
      return true;
    },
    async ended(timeoutMs) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((done) => {
        timer = setTimeout(done, timeoutMs);
      });
      await Promise.race([working, late]);
      clearTimeout(timer);
    },
    stop() {
      stopping.abort(new Error('Postern stops'));
      return working;
    },
  };
}
