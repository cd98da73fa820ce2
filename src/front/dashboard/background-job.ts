/**
 * Long jobs that run in the background, one at a time, while pages show their progress. The last job is kept in memory, so
 * after a restart there is none.
 */
import { setTimeout } from 'node:timers/promises';
import type { Clock } from '#platform/base/clock.ts';

interface BackgroundJob<Request, Progress, Result> {
  request: Request;
  startedAt: number;
  progress: Progress | null;
  /** Null while it is running. */
  endedAt: number | null;
  /** Null while it is running, and if it failed. */
  result: Result | null;
}

export interface BackgroundJobs<Request, Progress, Result> {
  /** The running job, else the last one. */
  last(): BackgroundJob<Request, Progress, Result> | null;
  /** Returns false, and starts nothing, if a job is running. */
  start(request: Request): boolean;
  /** Waits until no job is running, for at most this long. */
  waitUntilEnded(timeoutMs: number): Promise<void>;
  /** Aborts the running job and refuses new ones; resolves when it has ended. */
  stop(): Promise<void>;
}

export function createBackgroundJobs<Request, Progress, Result>(
  clock: Clock,
  work: (request: Request, onProgress: (progress: Progress) => void, signal: AbortSignal) => Promise<Result>,
  onFailure: (error: unknown) => void,
): BackgroundJobs<Request, Progress, Result> {
  let last: BackgroundJob<Request, Progress, Result> | null = null;
  let running: Promise<void> = Promise.resolve();
  const stopping = new AbortController();

  async function run(run: BackgroundJob<Request, Progress, Result>): Promise<void> {
    try {
      const onProgress = (progress: Progress) => {
        run.progress = progress;
      };
      run.result = await work(run.request, onProgress, stopping.signal);
    } catch (error) {
      onFailure(error);
    }
    run.endedAt = clock.now();
  }

  return {
    last: () => last,
    start(request) {
      if (last?.endedAt === null || stopping.signal.aborted) return false;
      last = { request, startedAt: clock.now(), progress: null, endedAt: null, result: null };
      running = run(last);
      return true;
    },
    async waitUntilEnded(timeoutMs) {
      const ended = new AbortController();
      const late = setTimeout(timeoutMs, undefined, { signal: ended.signal }).catch(() => {});
      await Promise.race([running, late]);
      ended.abort();
    },
    stop() {
      stopping.abort(new Error('Postern stops'));
      return running;
    },
  };
}
