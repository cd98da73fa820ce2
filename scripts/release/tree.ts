/**
 * The installed program as a directory, the same in the .tar.gz and in the .deb (/opt/postern): the committed files that run,
 * production dependencies, Node, and release.json, by which `postern upgrade` judges a release.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newest } from '#platform/database/schema/migrate.ts';

export const root = join(import.meta.dirname, '../..');

interface Release {
  version: string;
  commit: string;
  architecture: string;
  node: string;
  /** The newest step of the schema. */
  schema: string;
}

export interface Tree {
  directory: string;
  release: Release;
}

/** Returns what the program printed. */
export function run(program: string, args: string[], cwd = root): string {
  return execFileSync(program, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

const committed = [
  'LICENSE',
  'README.md',
  'config',
  'docs',
  'package-lock.json',
  'package.json',
  'scripts/node.sh',
  'scripts/notify-socket.pl',
  'scripts/postern',
  'scripts/sqlite-driver',
  'scripts/start',
  'src',
];

export function buildTree(parent: string): Tree {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const directory = join(parent, `postern-${version}`);
  mkdirSync(directory, { recursive: true });
  run('sh', ['-c', 'git archive HEAD "$@" | tar --extract --directory "$0"', directory, ...committed]);
  rmSync(join(directory, 'docs/screenshots'), { recursive: true });
  addDependencies(directory);
  const node = join(directory, 'node_modules/.bin/node');
  copyFileSync(join(root, 'node_modules/node/bin/node'), node);
  chmodSync(node, 0o755);
  const release: Release = {
    version,
    commit: run('git', ['rev-parse', 'HEAD']).trim(),
    architecture: process.arch,
    node: process.version,
    schema: newest,
  };
  writeFileSync(join(directory, 'release.json'), `${JSON.stringify(release, null, 2)}\n`);
  run('chmod', ['-R', 'u=rwX,go=rX', directory]);
  return { directory, release };
}

/** SQLite's driver is one that was compiled here, from the package of the lock file: a downloaded one has no checksum in it. */
function addDependencies(directory: string): void {
  if (!existsSync(join(root, 'node_modules/sqlite3/build/compiled')))
    run(join(root, 'scripts/sqlite-driver'), ['--compile']);
  copyFileSync(join(root, '.npmrc'), join(directory, '.npmrc'));
  run('npm', ['ci', '--omit=dev', '--ignore-scripts'], directory);
  rmSync(join(directory, '.npmrc'));
  const driver = 'node_modules/sqlite3/build/Release/node_sqlite3.node';
  mkdirSync(join(directory, driver, '..'), { recursive: true });
  copyFileSync(join(root, driver), join(directory, driver));
  run(join(root, 'scripts/lean-modules'), [directory]);
}
