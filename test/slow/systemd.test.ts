/** What systemd is told by its socket and in its journal, by the program as scripts/start runs it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createCli } from '#lab/cli.ts';
import { manualClock } from '#lab/clock.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { createServiceManager } from '#platform/base/systemd/service-manager.ts';

const start = join(import.meta.dirname, '../../scripts/start');
const withPerl = spawnSync('perl', ['-MSocket', '-e', '1']).status === 0 ? test : test.skip;

/** Prints each message in a line of its own. */
const listener = `
  use Socket; $| = 1;
  socket(S, PF_UNIX, SOCK_DGRAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die; print "open\\n";
  while (defined recv(S, my $message, 4096, 0)) { $message =~ s/\\n/ /g; print "$message\\n" }`;

interface Begun {
  child: ChildProcess;
  ended: Promise<unknown>;
  output(): Promise<string>;
}

/** Its output is a file, which the variable names as the journal. */
async function begin(t: ExecutionContext, settings: Record<string, string>): Promise<Begun> {
  const path = join(await temporaryDirectory(t), 'journal');
  const file = openSync(path, 'w');
  const { dev, ino } = fstatSync(file);
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(start, {
    env: { PATH, NODE_COMPILE_CACHE, POSTERN_HTTP_PORT: '0', JOURNAL_STREAM: `${dev}:${ino}`, ...settings },
    stdio: ['ignore', file, file],
  });
  closeSync(file);
  t.teardown(() => child.kill('SIGKILL'));
  return { child, ended: once(child, 'exit'), output: () => readFile(path, 'utf8') };
}

withPerl('systemd is told when the server is ready, reloading and stopping', async (t) => {
  const socket = join(await temporaryDirectory(t), 'notify');
  const systemd = spawn('perl', ['-e', listener, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => systemd.kill());
  let told = '';
  systemd.stdout.on('data', (text) => {
    told += text;
  });
  await until(() => told);
  const { child, ended, output } = await begin(t, {
    POSTERN_DATA_DIR: await temporaryDirectory(t),
    NOTIFY_SOCKET: socket,
    WATCHDOG_USEC: '600000000',
  });
  await until(() => told.includes('WATCHDOG'));
  t.is(told, 'open\nREADY=1\nWATCHDOG=1\n');
  await until(async () => /serves at http/.test(await output()));
  t.is((await readFile(`/proc/${child.pid}/comm`, 'utf8')).trim(), 'postern');
  child.kill('SIGHUP');
  await until(() => told.match(/READY/g)?.length === 2);
  t.regex(told, /WATCHDOG=1\nRELOADING=1 MONOTONIC_USEC=\d+\nREADY=1\n$/);
  child.kill('SIGTERM');
  t.deepEqual(await ended, [0, null]);
  t.regex(told, /READY=1\nSTOPPING=1\n$/);
});

test('lines of the journal have their priority', async (t) => {
  const { ended, output } = await begin(t, { POSTERN_MTA_PORT: 'smtp' });
  t.deepEqual(await ended, [1, null]);
  t.regex(await output(), /^<3>postern: POSTERN_MTA_PORT: "smtp"/);
  const { child, output: lines } = await begin(t, { POSTERN_DATA_DIR: await temporaryDirectory(t) });
  await until(async () => (await lines()).includes('"warn"'));
  child.kill('SIGTERM');
  for (const line of (await lines()).split('\n').filter((text) => text !== ''))
    t.regex(line, /^(?:<4>\{"level":"warn"|\{"level":"info")/);
});

test('the watchdog is told three times in its interval while the queue is alive', async (t) => {
  const path = join(await temporaryDirectory(t), 'socket');
  const clock = manualClock(Date.now());
  let isAlive = true;
  const manager = createServiceManager(clock, {
    NOTIFY_FD: String(openSync(path, 'a')),
    WATCHDOG_USEC: '300000000',
  });
  manager.startWatchdog(() => isAlive);
  const beats = async () => ((await readFile(path, 'utf8')).match(/WATCHDOG=1/g) ?? []).length;
  await clock.advance('5m');
  await until(async () => (await beats()) === 4);
  isAlive = false;
  await clock.advance('5m');
  isAlive = true;
  await clock.advance('100s');
  await until(async () => (await beats()) === 5);
  t.is(clock.pending.length, 1);
  createServiceManager(clock, {}).startWatchdog(() => true);
  t.is(clock.pending.length, 1, 'without systemd nobody is told');
});

test('the queue has progressed in each minute, also without mail', async (t) => {
  const world = await startWorld(t);
  for (let minute = 0; minute < 3; minute++) {
    await world.clock.passUntil(() => world.hasProgressed(), { step: '10s' });
  }
  t.pass();
});

test('a shaping file that is not valid fails the check before a start or a reload', async (t) => {
  const file = join(await temporaryDirectory(t), 'shaping.jsonc');
  const { refusal } = createCli(t, {
    POSTERN_DATA_DIR: await temporaryDirectory(t),
    POSTERN_SHAPING_FILE: file,
  });
  t.regex(await refusal(1, 'config --check'), /shaping\.jsonc/);
});
