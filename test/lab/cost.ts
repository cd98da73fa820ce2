/**
 * What work costs this thread, as processor time: other processes, and other threads of this one, do not count. Limits are
 * milliseconds of a usual machine; on a slower one, or beside other work, a fixed piece of work that is measured in the same
 * process says how much more is allowed. What costs too much is measured again, because a garbage collection of other tests'
 * leftovers may fall into any of them.
 */
import { openSync, writeSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import { runningTests } from './running-tests.ts';
import { threadMs } from './thread-time.ts';

type Action = () => unknown;

const maxRounds = 8;

/** `action` takes `limitMs` at most. It runs again if it took longer; an asynchronous one needs `test.serial`. */
export function costsAtMost(t: ExecutionContext, limitMs: number, action: Action, what = 'it') {
  return isWithin(t, limitMs, () => costOf(action), what);
}

/** During `action` the event loop never stands still for more than `limitMs`. It runs again if it did; needs `test.serial`. */
export function stallsAtMost(t: ExecutionContext, limitMs: number, action: Action, what = 'it') {
  requireAlone();
  return isWithin(t, limitMs, () => longestStall(async () => action()), what);
}

async function isWithin(t: ExecutionContext, limitMs: number, measure: () => Promise<number>, what: string) {
  const seen: number[] = [];
  while (seen.length < maxRounds) {
    const ms = await measure();
    if (ms <= limitMs || ms <= limitMs * slowness()) return void t.pass();
    seen.push(Math.round(ms));
  }
  t.fail(
    `${what}: ${seen} ms of the processor; at most ${limitMs} times ${slowness().toFixed(1)} are allowed`,
  );
}

/**
 * Work for a text of four times the size costs less than eight times as much; if it grew with the square, it would cost
 * sixteen.
 */
export async function growsLinearly(
  t: ExecutionContext,
  work: (size: number) => unknown,
  { size, what = 'it' }: { size: number; what?: string },
): Promise<void> {
  if ((await costOf(() => work(4 * size))) < 8 * floorMs) return void t.pass();
  // Whatever else happens only adds to a cost, so the least of several is the nearest.
  let [short, long] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < maxRounds; round++) {
    short = Math.min(short, await costOf(() => work(size)));
    long = Math.min(long, await costOf(() => work(4 * size)));
    if (long < 8 * Math.max(short, floorMs)) return void t.pass();
  }
  t.fail(
    `${what}: ${Math.round(short)} ms of the processor, and ${Math.round(long)} ms for four times as much`,
  );
}

/** Costs below this say nothing: the kernel counts in steps of some milliseconds. */
const floorMs = 20;

async function costOf(action: Action): Promise<number> {
  const before = threadMs();
  const result = action();
  if (result instanceof Promise) {
    requireAlone();
    await result;
  }
  return threadMs() - before;
}

/** Other tests of the process would be measured, too. */
function requireAlone(): void {
  if (runningTests.count > 1) throw new Error('a test that measures runs alone: declare it with test.serial');
}

/** How many times as long as a usual machine this one takes just now; at least 1. */
function slowness(): number {
  const costs = Array.from({ length: 5 }, () => {
    const before = threadMs();
    fixedWork();
    return threadMs() - before;
  });
  return Math.max(1, costs.sort((a, b) => a - b)[2]! / usualMs);
}

/** What `fixedWork` takes on a usual machine. */
const usualMs = 40;
const sink = openSync('/dev/null', 'w');
const byte = Buffer.alloc(1);
const mebi = 1024 * 1024;
const people = Array.from({ length: 2_000 }, (_, id) => ({
  id,
  to: `person${id}@there.invalid`,
  text: 'Grüße ',
}));

/** What the server does most: parses, makes texts, fills new memory, calls the kernel. */
function fixedWork(): void {
  for (let n = 0; n < 10; n++) {
    const text = JSON.stringify(people);
    JSON.parse(text.replace(/person(\d+)@/g, (_, id) => `x${id}@`));
  }
  Buffer.concat([Buffer.alloc(4 * mebi, 1), Buffer.alloc(4 * mebi, 1)]).indexOf('x');
  for (let n = 0; n < 10_000; n++) writeSync(sink, byte);
}

const intervalMs = 5;

/** The longest time that the event loop of this thread stood still during `action`, in milliseconds of processor time. */
async function longestStall(action: () => Promise<unknown>): Promise<number> {
  let [longest, last] = [0, threadMs()];
  const look = () => {
    longest = Math.max(longest, threadMs() - last);
    last = threadMs();
  };
  const timer = setInterval(look, intervalMs);
  try {
    await action();
    look();
  } finally {
    clearInterval(timer);
  }
  return longest;
}
