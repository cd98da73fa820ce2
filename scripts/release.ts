/**
 * `npm run release`: builds what belongs to a tag, from the last commit, into the directory dist: a .tar.gz and a .deb with the
 * production dependencies and Node, the container image, the list of packages (CycloneDX), SHA256SUMS, and an apt source.
 *
 *   npm run release                     needs git, dpkg-deb and gzip; `npm ci` has built SQLite's driver
 *   npm run release -- --no-image       without the image, which needs buildah, podman or docker
 *   npm run release -- --unsigned       without a signature, for a trial; otherwise POSTERN_RELEASE_KEY names the private key
 *   npm run release -- --new-key FILE   builds nothing: makes a key to sign with (release/sign.ts)
 *
 * Built again from the same commit with the same npm and tools, the files are the same: times are the commit's, and all belong
 * to root. The image's layers have times of their own.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAptSource } from './release/apt.ts';
import { buildDeb } from './release/deb.ts';
import { buildImage, imageBuilder } from './release/image.ts';
import { makeKey, readSigningKey, signSums } from './release/sign.ts';
import { buildTree, root, run } from './release/tree.ts';

const { values } = parseArgs({
  options: {
    image: { type: 'boolean', default: true },
    unsigned: { type: 'boolean', default: false },
    'new-key': { type: 'string' },
  },
  allowNegative: true,
});
if (values['new-key'] !== undefined) {
  makeKey(values['new-key']);
  process.exit(0);
}
const signingKey = readSigningKey(values.unsigned);
const builder = values.image ? imageBuilder() : null;

if (run('git', ['status', '--porcelain']) !== '')
  throw new Error('there are uncommitted changes; a release is what is committed');

// npm, dpkg-deb and tar take the time of everything from it.
process.env.SOURCE_DATE_EPOCH = run('git', ['log', '-1', '--format=%ct']).trim();
const dist = join(root, 'dist');
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);

const tree = buildTree(join(dist, 'work'));
const { version, architecture } = tree.release;
const base = `postern-${version}`;
console.log(`${base}: ${tree.directory}`);

const archive = join(dist, `${base}-linux-${architecture}.tar.gz`);
run('sh', [
  '-c',
  'tar --directory "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --create "$2" | gzip -n >"$3"',
  'sh',
  join(dist, 'work'),
  base,
  archive,
]);
buildDeb(tree, dist);
writeFileSync(
  join(dist, `${base}.cdx.json`),
  run('npm', [
    'sbom',
    '--omit=dev',
    '--package-lock-only',
    '--sbom-format=cyclonedx',
    '--sbom-type=application',
  ]),
);
if (builder !== null) buildImage(tree, builder, join(dist, `${base}-image-${architecture}.tar`));
rmSync(join(dist, 'work'), { recursive: true });

const sums = readdirSync(dist)
  .sort()
  .map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(dist, name)))
        .digest('hex')}  ${name}\n`,
  );
writeFileSync(join(dist, 'SHA256SUMS'), sums.join(''));
signSums(dist, signingKey);
buildAptSource(dist, signingKey, Number(process.env.SOURCE_DATE_EPOCH));
process.stdout.write(sums.join(''));
