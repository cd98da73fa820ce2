/**
 * A staggered race (RFC 8305 section 5): runners start one after the other, each a head start after the one before,
 * or at once when one has failed. The first to succeed wins; the others are aborted by their signal. Rejects when
 * all have failed, with their errors in the runners' order, or when `stopped` aborts, with its reason.
 *
 * The head start uses the real clock. No timer or listener remains when the race ends, and late results are discarded.
 */
export interface RaceRunner<T> {
  /** False: the next one starts together with this one. */
  headStart: boolean;
  /** Rejects soon when it is over. */
  run(over: AbortSignal): Promise<T>;
}

export class AllFailed extends Error {
  override name = 'AllFailed';
  readonly errors: Error[];

  constructor(errors: Error[]) {
    super(errors.map(({ message }) => message).join('; '));
    this.errors = errors;
  }
}

export interface RaceRules<T> {
  headStartMs: number;
  stopped: AbortSignal;
  discard(late: T): void;
}

export function race<T>(
  runners: RaceRunner<T>[],
  { headStartMs, stopped, discard }: RaceRules<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (stopped.aborted) return reject(stopped.reason);
    const over = new AbortController();
    const errors: Error[] = [];
    let started = 0;
    let failed = 0;
    let timer: NodeJS.Timeout | undefined;

    const end = (settle: () => void) => {
      clearTimeout(timer);
      stopped.removeEventListener('abort', stop);
      settle();
      over.abort();
    };
    const stop = () => end(() => reject(stopped.reason));
    stopped.addEventListener('abort', stop, { once: true });

    const arrive = (value: T) => {
      if (over.signal.aborted) return discard(value);
      end(() => resolve(value));
    };
    const fail = (error: Error, at: number) => {
      if (over.signal.aborted) return;
      errors[at] = error;
      failed += 1;
      if (failed === runners.length) end(() => reject(new AllFailed(errors)));
      else startNext();
    };
    const startNext = () => {
      clearTimeout(timer);
      const at = started;
      const runner = runners[at];
      if (!runner) return;
      started += 1;
      runner.run(over.signal).then(arrive, (error) => fail(error, at));
      if (runner.headStart) timer = setTimeout(startNext, headStartMs);
      else startNext();
    };
    startNext();
  });
}
