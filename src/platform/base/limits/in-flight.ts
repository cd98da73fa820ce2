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
