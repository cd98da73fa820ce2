/**
 * `postern upgrade` refuses what is no complete, newer release, before it changes anything. docs/development.md says how the
 * rest is tried.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createCli } from '#lab/cli.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { newest } from '#platform/database/schema/migrate.ts';

/** A release that contains nothing but what it says about itself, with its checksum. */
async function releaseOf(t: ExecutionContext, members: Record<string, string>): Promise<string> {
  const place = await temporaryDirectory(t);
  const release = { version: '99.0.0', architecture: process.arch, schema: newest, ...members };
  await mkdir(join(place, 'postern-99'));
  await writeFile(join(place, 'postern-99/release.json'), JSON.stringify(release));
  const file = join(place, 'postern-99.tar.gz');
  execFileSync('tar', ['--create', '--gzip', '--directory', place, '--file', file, 'postern-99']);
  const sum = createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
  await writeFile(join(place, 'SHA256SUMS'), `${sum}  postern-99.tar.gz\n`);
  return file;
}

test('a file that is not a complete release, or not a newer one, is refused', async (t) => {
  const { refusal } = createCli(t, { POSTERN_DATA_DIR: await temporaryDirectory(t) });
  const refused = (file: string) => refusal(1, `upgrade ${file}`);
  t.regex(await refused('/no/such.deb'), /does not exist; give the \.deb or the \.tar\.gz/);
  const good = await releaseOf(t, {});
  t.regex(await refused(good), /only the service of a machine is upgraded like this/);
  for (const [members, said] of [
    [{ version: '0.0.1' }, /0\.0\.1 is not newer than the installed/],
    [{ version: '0.0.1-rc.1' }, /is not newer/],
    [{ architecture: 'riscv' }, /this release is for riscv/],
    [{ schema: '001-first' }, /has an older schema \(001-first\)/],
  ] as const) {
    t.regex(await refused(await releaseOf(t, members)), said);
  }
  await writeFile(good, (await readFile(good)).subarray(0, -1));
  t.regex(await refused(good), /does not have the checksum of .*SHA256SUMS; download it again/);
  await writeFile(join(good, '../SHA256SUMS'), '');
  t.regex(await refused(good), /does not name postern-99\.tar\.gz/);
});
