/** How many tests of this process run just now: test/lab/limit-concurrency.ts counts them where a room runs. */
export const runningTests = { count: 0 };
