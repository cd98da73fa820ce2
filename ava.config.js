/** Files run side by side in processes of their own; a test may wait ten seconds for a condition, twice. */
export default {
  files: ['test/**/*.test.ts'],
  extensions: ['ts'],
  workerThreads: false,
  timeout: '60s',
};
