/**
 * What takes long and goes on in the background, one at a time, while pages look at how far it has come. The last one is
 * kept, in memory: after a restart there is none.
 */
import type { Clock } from '../base/clock.ts';

interface BackgroundJob<Request, Progress, Result> {
  request: Request;
  startedAt: number;
  progress: Progress | null;
  /** Null: it goes on. */
  endedAt: number | null;
  /** Null while it goes on, and where it failed. */
  result: Result | null;
}

export interface BackgroundJobs<Request, Progress, Result> {
  /** The one that goes on, or the last. */
  last(): BackgroundJob<Request, Progress, Result> | null;
  /** False: one goes on already, and nothing is begun. */
  start(request: Request): boolean;
  /** Waits until nothing goes on, or so long. */
  waitUntilEnded(timeoutMs: number): Promise<void>;
  /** Breaks off what goes on, and begins nothing any more; resolves when nothing goes on. */
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
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((done) => {
        timer = setTimeout(done, timeoutMs);
      });
      await Promise.race([running, late]);
      clearTimeout(timer);
    },
    stop() {
      stopping.abort(new Error('Postern stops'));
      return running;
    },
  };
}
