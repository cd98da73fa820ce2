/** `npm test` in a clone that only its owner can enter: root's in /root, and that of a user without privileges. */
import { execFile } from 'node:child_process';
import { chown, cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
/** On both databases. */
const file = 'test/platform/database/shared-commit.test.ts';
const notCopied = ['node_modules', '.git', 'data'];
const nobody = 65_534;
const asRoot = process.getuid?.() === 0 ? test.serial : test.serial.skip;

async function clone(t: ExecutionContext, owner: number): Promise<string> {
  // Not in the directory of the tests, which may be in memory: packages are linked, not copied, if they can be.
  const home = await mkdtemp(join(tmpdir(), 'postern-clone-'));
  t.teardown(() => rm(home, { recursive: true, force: true }));
  const path = join(home, 'postern');
  const isCopied = (from: string) =>
    !notCopied.includes(basename(from)) && !basename(from).startsWith('.rooms-');
  await cp(root, path, { recursive: true, filter: isCopied });
  await mkdir(join(home, 'tmp'));
  await run('chown', ['-R', `${owner}:${owner}`, path, join(home, 'tmp')]);
  const packages = [join(root, 'node_modules'), path];
  await run('cp', ['-al', ...packages]).catch(() => run('cp', ['-a', ...packages]));
  await chown(home, owner, owner);
  return home;
}

async function runTests(t: ExecutionContext, uid: number): Promise<void> {
  const home = await clone(t, uid);
  const cwd = join(home, 'postern');
  const env = { PATH: process.env.PATH, HOME: home, TMPDIR: join(home, 'tmp') };
  const args = ['scripts/test.ts', file];
  const { stdout } = await run(join(cwd, 'node_modules/.bin/node'), args, { cwd, env, uid, gid: uid });
  t.regex(stdout, /\n[1-9]\d* passed, 0 failed\n$/);
  t.deepEqual(await readdir(join(home, 'tmp')), [], 'nothing is left behind');
}

asRoot('the tests run for root in a directory that only root can enter', (t) => runTests(t, 0));

asRoot('the tests run for a user without privileges', (t) => runTests(t, nobody));
