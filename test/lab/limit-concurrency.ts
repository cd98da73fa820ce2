/**
 * Bounds how many tests of a process run at once: AVA would start all of them together, and a room has hundreds. More than
 * a processor has work for, because tests wait for sockets and databases most of the time.
 */
import test from 'ava';
import { runningTests } from './running-tests.ts';

const maxRunning = 6;
const waiting: (() => void)[] = [];

test.beforeEach(async () => {
  if (runningTests.count === maxRunning) await new Promise<void>((resolve) => waiting.push(resolve));
  else runningTests.count += 1;
});

// Also after a failure. The next test takes over the turn.
test.afterEach.always(() => {
  const next = waiting.shift();
  if (next) next();
  else runningTests.count -= 1;
});
