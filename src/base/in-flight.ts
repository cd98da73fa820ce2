/** A function that tells how many of its calls are under way. */
export interface Counted<Args extends unknown[], Result> {
  call(...args: Args): Promise<Result>;
  underWay(): number;
}

export function counted<Args extends unknown[], Result>(
  act: (...args: Args) => Promise<Result>,
): Counted<Args, Result> {
  let underWay = 0;
  return {
    async call(...args) {
      underWay += 1;
      try {
        return await act(...args);
      } finally {
        underWay -= 1;
      }
    },
    underWay: () => underWay,
  };
}
