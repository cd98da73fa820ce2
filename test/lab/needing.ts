/**
 * A test that needs a program of the system, which npm does not bring. Where it is missing the test is left out, and the run
 * says so; but not in CI, which installs it (.ci/run): there it fails.
 */
import test from 'ava';

export const testWithProgram = (isInstalled: boolean) =>
  isInstalled || process.env.TEST_EVERYTHING ? test : test.skip;
