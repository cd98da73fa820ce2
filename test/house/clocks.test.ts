/**
 * No test of `npm test` judges a clock, because a machine may be slow or have other work: what work costs is judged by
 * test/lab/cost.ts, what is waited for by test/lab/until.ts, and AVA ends what hangs.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';

const tests = join(import.meta.dirname, '..');

/** What reads a clock that goes on by itself, or sets a deadline. */
const instrument =
  /\bperformance\.now\b|\bhrtime\b|\b(?:threadC|c)puUsage\b|\bthreadMs\b|\blongestStall\b|\bsetDefaultTimeout\b|\bt\.timeout\b/;

/** Files that use one, with the reason why nothing fails on a slow machine. */
const allowed: Record<string, string> = {
  'front/smtp/inbound-bounds.test.ts': 'waits until a time is over',
  'house/expressions.test.ts': 'compares processor times; the clock only spares what is quick',
  'mail/record/rows/retention.test.ts': 'something takes a time at least',
  'platform/base/minimum-rate.test.ts': 'keeps the thread busy',
};

test('no test judges a clock', (t) => {
  const files = globSync('**/*.test.ts', { cwd: tests }).filter((file) => !/^(slow|fixtures)\//.test(file));
  const found = files.filter((file) => instrument.test(readFileSync(join(tests, file), 'utf8')));
  t.deepEqual(
    found.sort(),
    Object.keys(allowed).sort(),
    'use test/lab/cost.ts, or wait with test/lab/until.ts',
  );
});
