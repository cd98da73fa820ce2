/**
 * scripts/test.ts runs all tests with one process for each room: `test/.rooms-<pid>/` has a file for each, which imports
 * the test files of the room. Named files run in processes of their own. The time-out is for what hangs: it counts from
 * the last test that ended.
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';

/** They take longest, so they start first: the run would wait for them alone at its end. */
const longest = [
  'slow-killed',
  'slow-move',
  'slow-nodes-changes',
  'slow-nodes-killed',
  'slow-lost-connection',
  'slow-move-steps',
  'slow-upgrade',
  'browser',
  'dashboard',
  'api',
  'smtp-in',
  'db',
  'cluster',
  'webhooks',
  'delivery',
  'accounts',
  'operate',
  'contract',
  'dialects',
  'cli',
  'queue',
  'route',
  'server',
  'smtp-out',
];

const startOf = (path) => longest.indexOf(basename(path, '.ts')) + 1 || Number.POSITIVE_INFINITY;

const isFailure = /-failed$|^(timeout|unhandled-rejection|uncaught-exception|internal-error)$/;

export default {
  files: process.env.TEST_ROOMS ? [`test/${process.env.TEST_ROOMS}/*.ts`] : ['test/**/*.test.ts'],
  extensions: ['ts'],
  workerThreads: false,
  timeout: '3m',
  // Twice as many as processors, because each waits for sockets, databases and other processes for half of its time.
  concurrency: 2 * availableParallelism(),
  sortTestFiles: (a, b) => Math.sign(startOf(a) - startOf(b)) || a.localeCompare(b),
  nonSemVerExperiments: { observeRunsFromConfig: true },
  observeRun,
};

/**
 * Leaves the numbers of passed and failed tests, the names of the failed ones, and the slowest in the file TEST_COUNTS when the
 * run has ended; a run that was cut short leaves none. AVA prints only one of the two, and its TAP reporter crashes when a value
 * that failed a test contains undefined.
 */
async function observeRun({ events }) {
  if (!process.env.TEST_COUNTS) return;
  let stats;
  const tests = [];
  const failedTests = [];
  for await (const event of events) {
    if (event.type === 'stats') ({ stats } = event);
    if (event.type === 'test-passed') tests.push(event);
    if (isFailure.test(event.type)) failedTests.push(nameOf(event));
    if (event.type === 'end' && stats)
      writeFileSync(
        process.env.TEST_COUNTS,
        JSON.stringify({ ...countsOf(stats), failedTests, slowest: slowestOf(tests) }),
      );
  }
}

function slowestOf(tests) {
  return tests
    .sort((a, b) => b.duration - a.duration)
    .slice(0, 20)
    .map((test) => `${(test.duration / 1000).toFixed(1)} s ${nameOf(test)}`);
}

/** What is not a test (a hook, a process) is named by what happened. */
function nameOf({ testFile = '', title, type }) {
  return `${basename(testFile, '.ts')} › ${title ?? type}`;
}

/** What breaks outside a test (a hook, a process, a test that never ended) fails as much as a test. */
function countsOf(stats) {
  const { passedTests: passed, failedTests, failedHooks, failedWorkers, remainingTests } = stats;
  const { internalErrors, sharedWorkerErrors, unhandledRejections, uncaughtExceptions } = stats;
  const beside = internalErrors + sharedWorkerErrors + unhandledRejections + uncaughtExceptions;
  return { passed, failed: failedTests + failedHooks + failedWorkers + remainingTests + beside };
}
