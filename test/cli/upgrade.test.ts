/**
 * `postern upgrade` refuses what is no complete, newer release, before it changes anything. docs/development.md says how the
 * rest is tried.
 */
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { readRelease } from '#cli/upgrade/release-file.ts';
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

test('a release is refused before it is read unless a key of the program has signed it; openssl reads the signature too', async (t) => {
  const file = await releaseOf(t, {});
  const sums = join(file, '../SHA256SUMS');
  const [old, own, other] = [1, 2, 3].map(() => generateKeyPairSync('ed25519'));
  const keyFile = join(file, '../key.pem');
  const pem = (pair: typeof own) => pair!.publicKey.export({ type: 'spki', format: 'pem' });
  await writeFile(keyFile, `${pem(old)}${pem(own)}`);
  const signBy = async (pair: typeof own) =>
    writeFile(`${sums}.sig`, sign(null, await readFile(sums), pair!.privateKey));
  const refused = async () => (await t.throwsAsync(readRelease(file, keyFile)))!.message;

  t.regex(await refused(), /SHA256SUMS\.sig does not exist; put that file of the release beside/);
  await signBy(other);
  t.regex(await refused(), /is not a signature .* by the key of this program .* Download all files again/);
  await signBy(own);
  t.like(await readRelease(file, keyFile), { version: '99.0.0', isSigned: true });
  await writeFile(join(file, '../own.pem'), pem(own));
  const command = `pkeyutl -verify -pubin -inkey ${join(file, '../own.pem')} -rawin -in ${sums} -sigfile ${sums}.sig`;
  t.regex(execFileSync('openssl', command.split(' '), { encoding: 'utf8' }), /Verified Successfully/);

  const good = await readFile(sums, 'utf8');
  await writeFile(
    sums,
    good.replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
  );
  t.regex(await refused(), /is not a signature/, 'an altered list of checksums');
  await writeFile(sums, good);
  await writeFile(file, 'no release');
  t.regex(await refused(), /does not have the checksum/);
  t.like(await readRelease(await releaseOf(t, {}), '/no/key.pem'), { isSigned: false });
});
