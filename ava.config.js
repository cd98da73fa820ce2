/**
 * scripts/test.ts runs all tests with one process for each room: `test/.rooms/` has a file for each, which imports the
 * test files of the room. Named files run in processes of their own. The time-out is for what hangs: it counts from the
 * last test that ended.
 */
export default {
  files: process.env.TEST_ROOMS ? ['test/.rooms/*.ts'] : ['test/**/*.test.ts'],
  extensions: ['ts'],
  workerThreads: false,
  timeout: '3m',
};
