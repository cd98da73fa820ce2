/**
 * The apt source of a release: the tree dists beside the .deb, so that the directory of the release is what a line of sources.list names.
 * apt checks the signature of Release, which has the hash of Packages, which has that of the package.
 */
import { createHash, type KeyObject } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { certificateOf, detachedSignature } from './openpgp.ts';
import { run } from './tree.ts';

const suite = 'stable';
export const keyringFile = 'postern-releases.gpg';

/** `at`: in seconds, the time of the commit. Without a key, the source is not signed. */
export function buildAptSource(dist: string, key: KeyObject | null, at: number): void {
  const packages = readdirSync(dist)
    .filter((name) => name.endsWith('.deb'))
    .map((name) => ({ control: run('dpkg-deb', ['--field', join(dist, name)]), name }));
  const text = packages.map(({ control, name }) => `${control.trim()}\n${placeOf(dist, name)}\n`).join('');
  const architecture = /^Architecture: (.+)$/m.exec(text)![1]!;
  const folder = `main/binary-${architecture}`;
  const root = join(dist, 'dists', suite);
  mkdirSync(join(root, folder), { recursive: true });
  const files = { [`${folder}/Packages`]: Buffer.from(text), [`${folder}/Packages.gz`]: gzipSync(text) };
  for (const [path, bytes] of Object.entries(files)) writeFileSync(join(root, path), bytes);
  const sums = Object.entries(files).map(([path, bytes]) => ` ${sha256(bytes)} ${bytes.length} ${path}\n`);
  const release = Buffer.from(
    `Origin: Postern\nLabel: Postern\nSuite: ${suite}\nCodename: ${suite}\nArchitectures: ${architecture}\nComponents: main\nDate: ${new Date(at * 1000).toUTCString()}\nSHA256:\n${sums.join('')}`,
  );
  writeFileSync(join(root, 'Release'), release);
  if (key === null) return;
  writeFileSync(join(root, 'Release.gpg'), detachedSignature(key, release, at));
  writeFileSync(join(dist, keyringFile), certificateOf(key));
}

function placeOf(dist: string, name: string): string {
  const path = join(dist, name);
  return `Filename: ${name}\nSize: ${statSync(path).size}\nSHA256: ${sha256(readFileSync(path))}\n`;
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
