/** Files that exist completely or not at all. */
import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';

test('if several processes create a file at once, one writes it and all read the same', async (t) => {
  const directory = await temporaryDirectory(t);
  const file = join(directory, 'secret');
  const program = `
    import { readFileSync } from 'node:fs';
    import { createAtomic } from ${JSON.stringify(join(import.meta.dirname, '../../../src/platform/base/atomic-file.ts'))};
    createAtomic('${file}', 'written by ' + process.pid);
    process.stdout.write(readFileSync('${file}', 'utf8'));`;
  const write = () => promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  const found = await Promise.all(Array.from({ length: 4 }, write));
  const written = await readFile(file, 'utf8');
  t.regex(written, /^written by \d+$/);
  t.deepEqual(
    found.map(({ stdout }) => stdout),
    Array(4).fill(written),
  );
  t.deepEqual(await readdir(directory), ['secret']);
  t.is((await stat(file)).mode & 0o777, 0o600);
});
