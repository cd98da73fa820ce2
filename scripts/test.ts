/**
 * Runs the tests, on a PostgreSQL that it starts for the run (an npm package provides it).
 *
 *   npm test                            every room of test/ except slow, each in one process, small ones together
 *   npm test -- queue route             these rooms; `mail` means all below test/mail/
 *   npm test -- test/mail/deliver/route/dane.test.ts these files, each in a process of its own; other arguments go to AVA
 *   npm test -- --slowest               and print the slowest tests at the end, and what each process cost
 *   npm test -- --again                 and run at most three failed tests of rooms a second time (scripts/test/second-run.ts)
 *   npm run test:slow                   test/slow, and the rooms again on PostgreSQL, with property tests at full count; then
 *                                       what a mail costs (scripts/bench/cost-check.ts)
 *
 * The directories of failed tests are kept, and named at the end, as are the tests. The last line of a run that was not cut
 * short says `N passed, N failed`.
 */
import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, rmdir, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '#lab/database/postgres.ts';
import { makeTemplates } from '#lab/database/templates.ts';
import { titleFile } from '#lab/evidence.ts';
import { cpuSeconds } from '#lab/load/processes.ts';
import { isMeant, type Room, Runner, readRoom, readRooms, roomOf, sharingProcesses } from './test/rooms.ts';
import { type Judged, judge, type Run, withoutSecondRun } from './test/second-run.ts';

const root = join(import.meta.dirname, '..');
const tests = join(root, 'test');

/**
 * Rooms that the slow run leaves out: their tests say nothing about a database, need too long for a second time, or run on
 * PostgreSQL the first time (platform-database, mail-queue-cluster, and the files in a room's `rows/`).
 */
const onceOnly = [
  'platform-database',
  'mail-queue-cluster',
  'house',
  'scripts',
  'platform-vendor',
  'platform-settings',
  'mail-deliver-reply-rules',
  'platform-values',
  'mail-deliver-route',
  'server',
  'mail-deliver-smtp-out',
];
const isOnBoth = (file: string) => file.includes('/rows/');

/** AVA's options that take a value. */
const withValue = ['--match', '-m', '--timeout', '-T', '--concurrency', '-c', '--node-arguments', '--config'];

const costCheck = [join(root, 'scripts/bench.ts'), '--cost', '--check'];

const isSlow = process.argv[2] === '--slow';
const ownOptions = ['--slowest', '--again'];
const args = process.argv.slice(isSlow ? 3 : 2).filter((arg) => !ownOptions.includes(arg));
const { rooms, avaArgs } = await select();

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interruption.abort());

const directory = await mkdtemp(join(await fastestDirectory(), 'postern-tests-'));
// For programs that drop root's privileges.
await chmod(directory, 0o755);
const evidence = join(directory, 'evidence');
await mkdir(evidence, { mode: 0o755 });
const templates = join(directory, 'templates');
const costs = join(directory, 'costs');
await mkdir(costs);

process.exitCode = 1;
let result: Result | null = null;
try {
  result = await runOnPostgres();
} finally {
  await rm(templates, { recursive: true, force: true });
  if (process.argv.includes('--slowest')) await printCosts();
  await rm(costs, { recursive: true, force: true });
  if (interruption.signal.aborted) await rm(directory, { recursive: true, force: true });
  else await reportEvidence(result?.unstable ?? []);
}
if (result) {
  const isDear =
    isSlow && args.length === 0 && spawnSync(process.execPath, costCheck, { stdio: 'inherit' }).status !== 0;
  const { passed, failed, failedTests, slowest } = result;
  if (process.argv.includes('--slowest')) process.stdout.write(`${slowest.join('\n')}\n`);
  for (const name of failedTests) process.stdout.write(`failed: ${name}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exitCode = isDear ? 1 : result.exitCode;
}

interface Result extends Judged {
  exitCode: number;
  slowest: string[];
}

/** The rooms to run, null if files are named; and what AVA is told. */
async function select(): Promise<{ rooms: Room[] | null; avaArgs: string[] }> {
  const all = await readRooms(tests);
  const nameOf = (arg: string) => arg.replace(/^(\.\/)?test\//, '').replace(/\/$/, '');
  const isName = (arg: string, index: number) =>
    !arg.startsWith('-') && !withValue.includes(args[index - 1] ?? '');
  const named = args.filter((arg, index) => isName(arg, index) && !arg.endsWith('.test.ts'));
  const avaArgs = args.filter((arg) => !named.includes(arg));
  if (avaArgs.some((arg) => arg.endsWith('.test.ts'))) {
    if (named.length > 0) stop('Name either rooms or files: rooms run in processes of their own.');
    return { rooms: null, avaArgs };
  }
  const unknown = named.filter((arg) => !all.some((room) => isMeant(room, nameOf(arg))));
  if (unknown.length > 0)
    stop(
      `There is no room ${unknown.join(', ')}. The rooms are: ${all
        .map(({ name }) => name)
        .sort()
        .join(', ')}.`,
    );
  if (named.length > 0) {
    const names = named.map(nameOf);
    return { rooms: all.filter((room) => names.some((name) => isMeant(room, name))), avaArgs };
  }
  if (!isSlow) return { rooms: sharingProcesses(all), avaArgs };
  const slow = await readRoom(tests, 'slow');
  const again = all
    .filter(({ name }) => !onceOnly.includes(name))
    .map(({ name, files }) => ({ name, files: files.filter((file) => !isOnBoth(file)) }))
    .filter(({ files }) => files.length > 0);
  return {
    rooms: [...sharingProcesses(again), ...slow.files.map(roomOf)],
    avaArgs,
  };
}

function stop(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

/** null: the run was cut short. */
async function runOnPostgres(): Promise<Result | null> {
  const postgres = await startPostgres(directory, {
    max_connections: 300,
    // The tests kill Postern, never this server, so durability would only make them slower.
    full_page_writes: 'off',
    wal_level: 'minimal',
    max_wal_senders: 0,
    // Autovacuum would visit several hundred databases once a minute.
    autovacuum: 'off',
  });
  try {
    await makeTemplates(postgres.url, templates);
    const runner = new Runner({
      root,
      env: environment(postgres.url),
      countsFile: join(directory, 'counts.json'),
      interrupted: interruption.signal,
    });
    const { exitCode, counts } =
      rooms === null ? await runner.run(avaArgs) : await runner.runRooms(rooms, avaArgs);
    if (counts === null) return null;
    const runAgain: Run = (...given) => runner.runRooms(...given);
    const judged =
      rooms && process.argv.includes('--again')
        ? await judge(counts, rooms, runAgain)
        : withoutSecondRun(counts);
    const isRefused = judged.failed > 0 || (exitCode !== 0 && judged.unstable.length === 0);
    return { ...judged, exitCode: isRefused ? exitCode || 1 : 0, slowest: counts.slowest };
  } finally {
    await postgres.stop();
  }
}

function environment(postgresUrl: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    // A statement that waits for another connection's lock blocks a libuv thread. If a test file has several
    // worlds, each with two connections, four threads could all wait for a commit that has no thread to run in.
    UV_THREADPOOL_SIZE: '64',
    TEST_POSTGRES_URL: postgresUrl,
    TEST_TEMPLATES: templates,
    TEST_DIRECTORY: evidence,
    TEST_COSTS: costs,
    ...(isSlow && { TEST_SLOW: '1' }),
    // A room loads about four hundred TypeScript files, and so does each process that it starts.
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/node'),
  };
}

/** Names unstable tests, each with its evidence; removes the run's directory unless a failed test left its own in it. */
async function reportEvidence(unstable: Judged['unstable']): Promise<void> {
  const kept = await Promise.all(
    (await readdir(evidence)).map(async (name) => {
      const path = join(evidence, name);
      return { path, title: await readFile(join(path, titleFile), 'utf8').catch(() => null) };
    }),
  );
  for (const { name, title } of unstable) {
    process.stdout.write(`unstable: ${name}\n`);
    for (const { path } of kept.filter((one) => one.title === title))
      process.stdout.write(`  evidence: ${path}\n`);
  }
  if (kept.length > 0) process.stderr.write(`${kept.map(({ path }) => path).join('\n')}\n`);
  else await rmdir(evidence).then(() => rmdir(directory));
}

/** CPU seconds: of each process of tests with its children, and of the whole run with PostgreSQL. */
async function printCosts(): Promise<void> {
  const each = await Promise.all(
    (await readdir(costs)).map(async (room) => ({
      room,
      cost: Number(await readFile(join(costs, room), 'utf8')),
    })),
  );
  each.sort((a, b) => b.cost - a.cost);
  const all = { room: 'all', cost: cpuSeconds([process.pid]) };
  const lines = [...each, all].map(({ room, cost }) => `${cost.toFixed(1)} CPU s ${room}\n`);
  process.stdout.write(lines.join(''));
}

/** In memory if there is room: the programs that are tested wait for the disk at each commit. */
async function fastestDirectory(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => null);
  return memory && memory.bavail * memory.bsize > 4 * 2 ** 30 ? '/dev/shm' : tmpdir();
}
