/** A file of `npm run release`: whether it is complete, and whether it may follow the program that is installed. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Failure } from '#cli/failure.ts';
import { releaseKeyFile, requireSignature } from './release-signature.ts';

/** As scripts/release/tree.ts writes it. */
export interface Release {
  version: string;
  architecture: string;
  /** The newest step of the schema. */
  schema: string;
}

export const isPackage = (file: string) => file.endsWith('.deb');

/** `isSigned`: its signature was checked; false: this program has no key. */
export async function readRelease(
  file: string,
  keyFile = releaseKeyFile,
): Promise<Release & { isSigned: boolean }> {
  if (!existsSync(file))
    throw new Failure(`${file} does not exist; give the .deb or the .tar.gz of a release`);
  const sums = join(dirname(file), 'SHA256SUMS');
  if (!existsSync(sums))
    throw new Failure(`${sums} does not exist; put that file of the release beside ${basename(file)}`);
  const isSigned = requireSignature(sums, keyFile);
  await requireChecksum(file, sums);
  const read = isPackage(file)
    ? 'dpkg-deb --fsys-tarfile "$0" | tar --extract --to-stdout ./opt/postern/release.json'
    : 'tar --extract --gzip --to-stdout --wildcards --file "$0" "postern-*/release.json"';
  try {
    const text = execFileSync('sh', ['-c', read, file], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return { ...JSON.parse(text), isSigned };
  } catch {
    throw new Failure(`${file} is not a release of Postern; give the .deb or the .tar.gz of one`);
  }
}

/** A file that is incomplete, or not the one of the release, is not installed. */
async function requireChecksum(file: string, sums: string): Promise<void> {
  const line = readFileSync(sums, 'utf8')
    .split('\n')
    .find((each) => each.slice(64).trim() === basename(file));
  if (!line) throw new Failure(`${sums} does not name ${basename(file)}; put that of the same release there`);
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  if (hash.digest('hex') !== line.slice(0, 64))
    throw new Failure(`${file} does not have the checksum of ${sums}; download it again`);
}

export function requireSuccessor(release: Release, installed: Release): void {
  if (release.architecture !== installed.architecture)
    throw new Failure(
      `this release is for ${release.architecture}, and this machine is ${installed.architecture}; give that of ${installed.architecture}`,
    );
  if (compareVersions(release.version, installed.version) <= 0)
    throw new Failure(
      `${release.version} is not newer than the installed ${installed.version}; nothing to upgrade`,
    );
  if (release.schema < installed.schema)
    throw new Failure(
      `${release.version} has an older schema (${release.schema}) than the database (${installed.schema}); give a newer release`,
    );
}

/** Semantic versions: 1.0.0-rc.1 comes before 1.0.0, and 1.0.0 before 1.0.10. */
function compareVersions(a: string, b: string): number {
  const [coreOfA = '', ...preOfA] = a.split('-');
  const [coreOfB = '', ...preOfB] = b.split('-');
  const byNumber = (one: string, other: string) => one.localeCompare(other, 'en', { numeric: true });
  const byCore = byNumber(coreOfA, coreOfB);
  if (byCore !== 0 || (preOfA.length === 0) === (preOfB.length === 0))
    return byCore || byNumber(preOfA.join(), preOfB.join());
  return preOfA.length === 0 ? 1 : -1;
}
