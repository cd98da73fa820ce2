/**
 * Files run side by side in processes of their own. The time-out is for what hangs: it counts from the last test that ended, and on
 * a busy machine a file whose tests all start processes may have none for a minute.
 */
export default {
  files: ['test/**/*.test.ts'],
  extensions: ['ts'],
  workerThreads: false,
  timeout: '3m',
};
