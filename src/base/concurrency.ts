/** Limits and counts the calls in progress. */

/** Runs at most `max` tasks at once. The others wait, first come, first served. */
export function limitConcurrency(max: number): <T>(task: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (task) => {
    // A task that ends starts the task that has waited longest; `running` does not change, so that no new task can get in between.
    if (running === max) await new Promise<void>((start) => waiting.push(start));
    else running += 1;
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

/** Wraps an async function and counts its calls in progress. */
export function countInFlight<Args extends unknown[], Result>(act: (...args: Args) => Promise<Result>) {
  let inFlight = 0;
  return {
    async call(...args: Args): Promise<Result> {
      inFlight += 1;
      try {
        return await act(...args);
      } finally {
        inFlight -= 1;
      }
    },
    inFlight: () => inFlight,
  };
}
