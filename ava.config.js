/**
 * scripts/test.ts runs all tests with one process for each room: `test/.rooms-<pid>/` has a file for each, which imports
 * the test files of the room. Named files run in processes of their own. The time-out is for what hangs: it counts from
 * the last test that ended.
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';

/** They take longest, so they start first: the run would wait for them alone at its end. A walk in `server` waits for the browser. */
const longest = [
  ...[
    'slow-scripts',
    'slow-warm-up-month',
    'slow-killed',
    'slow-move',
    'slow-nodes-changes',
    'slow-move-steps',
  ],
  'slow-upgrade',
  ...['front-browser', 'operate', 'front-dashboard', 'front-dialects', 'server', 'contract'],
  ...['mail-queue', 'front', 'mail', 'front-http', 'front-api', 'platform-database', 'house'],
  ...['mail-deliver', 'mail-record', 'cli', 'mail-returned', 'accounts', 'mail-compose', 'mail-webhooks'],
  ...['mail-deliver-smtp-out', 'mail-deliver-route'],
];

const startOf = (path) => longest.indexOf(basename(path, '.ts')) + 1 || Number.POSITIVE_INFINITY;

const isFailure = /-failed$|^(timeout|unhandled-rejection|uncaught-exception|internal-error)$/;

export default {
  files: process.env.TEST_ROOMS ? [`test/${process.env.TEST_ROOMS}/*.ts`] : ['test/**/*.test.ts'],
  extensions: ['ts'],
  workerThreads: false,
  timeout: '10m',
  // Twice as many as processors, because each waits for sockets, databases and other processes for half of its time.
  concurrency: 2 * availableParallelism(),
  sortTestFiles: (a, b) => Math.sign(startOf(a) - startOf(b)) || a.localeCompare(b),
  nonSemVerExperiments: { observeRunsFromConfig: true },
  observeRun,
};

/**
 * Leaves the numbers of passed and failed tests, and their names, in the file TEST_COUNTS when the run has ended
 * (scripts/test/rooms.ts has the type); a run that was cut short leaves none. AVA prints only one of the two numbers, and its TAP
 * reporter crashes when a value that failed a test contains undefined.
 */
async function observeRun({ events }) {
  if (!process.env.TEST_COUNTS) return;
  let stats;
  const declared = [];
  const passed = [];
  const failures = [];
  for await (const event of events) {
    if (event.type === 'stats') ({ stats } = event);
    if (event.type === 'declared-test') declared.push(event);
    if (event.type === 'test-passed') passed.push(event);
    if (isFailure.test(event.type)) failures.push(failureOf(event));
    if (event.type === 'end' && stats) {
      const declaredTests = declared.map(testOf);
      const passedTests = passed.map(testOf);
      const slowest = slowestOf(passed);
      const counts = { ...countsOf(stats), failures, declaredTests, passedTests, slowest };
      writeFileSync(process.env.TEST_COUNTS, JSON.stringify(counts));
    }
  }
}

const testOf = ({ testFile, title }) => ({ room: roomOf(testFile), title });

const roomOf = (testFile = '') => basename(testFile, '.ts');

/** What is not a test (a hook, a process) is named by what happened. */
function failureOf({ testFile, title, type }) {
  const isTest = type === 'test-failed';
  const room = roomOf(testFile);
  return { name: `${room} › ${title ?? type}`, room, title: isTest ? title : null };
}

function slowestOf(tests) {
  return tests
    .sort((a, b) => b.duration - a.duration)
    .slice(0, 20)
    .map(
      ({ testFile, title, duration }) => `${(duration / 1000).toFixed(1)} s ${roomOf(testFile)} › ${title}`,
    );
}

/** What breaks outside a test (a hook, a process, a test that never ended) fails as much as a test. */
function countsOf(stats) {
  const { passedTests: passed, failedTests, failedHooks, failedWorkers, remainingTests } = stats;
  const { internalErrors, sharedWorkerErrors, unhandledRejections, uncaughtExceptions } = stats;
  const beside = internalErrors + sharedWorkerErrors + unhandledRejections + uncaughtExceptions;
  return { passed, failed: failedTests + failedHooks + failedWorkers + remainingTests + beside };
}
