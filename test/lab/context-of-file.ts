/** Not in evidence.ts, which scripts use too: only a test file can import AVA's hooks. */
import test, { type ExecutionContext } from 'ava';

/**
 * In place of a test's context, for what all tests of a file share. What is started with it is stopped after the last test.
 * Its directory is kept if a test of the process has failed, because AVA runs hooks without `always` only if all have passed.
 */
export function contextOfFile(): ExecutionContext {
  const steps: (() => unknown)[] = [];
  const context = {
    title: 'the tests of a file',
    passed: false,
    teardown: (step: () => unknown) => steps.unshift(step),
  };
  test.after(() => {
    context.passed = true;
  });
  test.after.always(async () => {
    for (const step of steps) await step();
  });
  return context as unknown as ExecutionContext;
}
