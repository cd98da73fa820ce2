/** What every test of a file in src/platform/vendor/ checks: the installed version, and that the private parts still work. */
import { readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The version is pinned exactly, installed, and named in the header of `file`. */
export function checkVersion(t: ExecutionContext, dependency: string, file: string): void {
  const pinned = JSON.parse(read('package.json')).dependencies[dependency];
  const { version } = JSON.parse(read(`node_modules/${dependency}/package.json`));
  const advice = `read its private parts that ${file} uses again, then name the version there and in package.json`;
  t.is(pinned, version, `package.json must pin ${dependency} to exactly ${version}`);
  t.true(
    read(file).includes(`Read in ${dependency} ${version}.`),
    `${dependency} is now ${version}: ${advice}`,
  );
}

/** Runs `use`; whatever goes wrong in it fails the test with one sentence. */
export async function checkPart(
  t: ExecutionContext,
  part: string,
  file: string,
  use: () => Promise<boolean>,
): Promise<void> {
  const works = await use().catch(() => false);
  t.true(works, `${part} has changed: ${file} relies on it and must be adapted`);
}
