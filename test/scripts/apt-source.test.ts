/** The apt source of a release: apt installs from it what is signed with the release key, and nothing else. */
import { execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { testWithProgram } from '#lab/needing.ts';
import { buildAptSource, keyringFile } from '../../scripts/release/apt.ts';

const isInstalled = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;
const test = testWithProgram(
  isInstalled('dpkg-deb', '--version') &&
    isInstalled('apt-get', '--version') &&
    isInstalled('gpgv', '--version'),
);

/** A directory as `npm run release` leaves it, with a package that has nothing in it. */
async function releaseIn(t: ExecutionContext): Promise<string> {
  const place = await temporaryDirectory(t);
  const control =
    'Package: postern\nVersion: 9.9.9\nArchitecture: all\nMaintainer: M <m@localhost>\nDescription: d\n';
  await mkdir(join(place, 'files/DEBIAN'), { recursive: true });
  await writeFile(join(place, 'files/DEBIAN/control'), control);
  await mkdir(join(place, 'dist'));
  execFileSync('dpkg-deb', ['--build', join(place, 'files'), join(place, 'dist/postern_9.9.9_all.deb')], {
    stdio: 'ignore',
  });
  return place;
}

/** `apt-get` with a world of its own in the directory. */
function aptIn(place: string, ...args: string[]) {
  const own = {
    Dir: join(place, 'apt'),
    'Dir::State::status': join(place, 'apt/status'),
    'Dir::Etc::SourceList': join(place, 'apt/sources.list'),
    'APT::Sandbox::User': 'root',
    'APT::Architectures::': 'all',
    'APT::Color': 'no',
  };
  const options = Object.entries(own).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  return spawnSync('apt-get', [...options, ...args], { cwd: place, encoding: 'utf8' });
}

test('apt takes the package of a signed release, and nothing that was changed since', async (t) => {
  const place = await releaseIn(t);
  const dist = join(place, 'dist');
  const { privateKey } = generateKeyPairSync('ed25519');
  buildAptSource(dist, privateKey, 1_790_000_000);
  const release = join(dist, 'dists/stable/Release');
  const verify = () => spawnSync('gpgv', ['--keyring', join(dist, keyringFile), `${release}.gpg`, release]);
  t.is(verify().status, 0, verify().stderr.toString());

  const folders = [
    'lists/partial',
    'archives/partial',
    'etc/apt.conf.d',
    'etc/preferences.d',
    'etc/sources.list.d',
  ];
  for (const folder of folders) await mkdir(join(place, 'apt', folder), { recursive: true });
  for (const folder of ['var/lib/apt/lists/partial', 'var/cache/apt/archives/partial', 'etc/apt/apt.conf.d'])
    await mkdir(join(place, 'apt', folder), { recursive: true });
  await writeFile(join(place, 'apt/status'), '');
  await writeFile(
    join(place, 'apt/sources.list'),
    `deb [signed-by=${join(dist, keyringFile)}] file:${dist} stable main\n`,
  );
  const updated = aptIn(place, 'update');
  t.is(updated.status, 0, updated.stdout + updated.stderr);
  const got = aptIn(place, 'download', 'postern');
  t.is(got.status, 0, got.stdout + got.stderr);

  await writeFile(release, (await readFile(release, 'utf8')).replace('Origin: Postern', 'Origin: Another'));
  t.not(verify().status, 0);
  const refused = aptIn(place, 'update');
  t.regex(refused.stdout + refused.stderr, /signature/i);
});
