/** Wraps an async function and counts its calls in progress. */
export interface InFlight<Args extends unknown[], Result> {
  call(...args: Args): Promise<Result>;
  inFlight(): number;
}

export function countInFlight<Args extends unknown[], Result>(
  act: (...args: Args) => Promise<Result>,
): InFlight<Args, Result> {
  let inFlight = 0;
  return {
    async call(...args) {
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
