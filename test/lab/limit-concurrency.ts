/**
 * Bounds how many tests of a process run at once: AVA would start all of them together, and a room has hundreds. More than
 * a processor has work for, because tests wait for sockets and databases most of the time.
 */
import test from 'ava';

const maxRunning = 6;
let running = 0;
const waiting: (() => void)[] = [];

test.beforeEach(async () => {
  if (running === maxRunning) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
});

// Also after a failure. The next test takes over the turn.
test.afterEach.always(() => {
  const next = waiting.shift();
  if (next) next();
  else running -= 1;
});
