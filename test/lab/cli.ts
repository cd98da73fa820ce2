/**
 * The command line: its arguments, its exit code, and what it writes to which stream. It runs in the test's own process,
 * or in a process of its own for what only that shows: signals, the umask, a terminal, a kill.
 */
import { execFile } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import type { ExecutionContext } from 'ava';
import type { CommandProcess } from '#cli/command-context.ts';
import { runCommand } from '#cli/postern.ts';
import type { Clock } from '#platform/base/clock.ts';
import { newSecret, secretFile, writeSecrets } from '#platform/base/secrets.ts';
import { createMigrated } from './database/databases.ts';
import { temporaryDirectory } from './evidence.ts';
import type { World } from './scenes/world.ts';

export const root = join(import.meta.dirname, '../..');
export const postern = join(root, 'scripts/postern');

interface Answer {
  code: number;
  stdout: Buffer;
  stderr: string;
}

export function run(file: string, args: string[], env: NodeJS.ProcessEnv): Promise<Answer> {
  return new Promise((resolve) => {
    execFile(file, args, { env, cwd: tmpdir(), encoding: 'buffer' }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr: stderr.toString() });
    });
  });
}

class Captured extends Writable {
  readonly chunks: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.chunks.push(chunk);
    done();
  }

  bytes = () => Buffer.concat(this.chunks);
}

/** Starts a command in this process. `exit` is what a signal is to a process: it ends a command that has no end. */
function startHere(
  args: string[],
  env: NodeJS.ProcessEnv,
  terminal: object = {},
  clock?: Pick<Clock, 'now'>,
) {
  const [stdout, stderr] = [new Captured(), new Captured()].map((each) => Object.assign(each, terminal));
  const own = Object.assign(new EventEmitter(), {
    env: { ...env },
    stdin: Readable.from([]),
    stdout: stdout!,
    stderr: stderr!,
  });
  const ended = runCommand(args, own as unknown as CommandProcess, clock).then(
    (code): Answer => ({ code, stdout: stdout!.bytes(), stderr: stderr!.bytes().toString() }),
  );
  const exit = () => {
    own.emit('exit');
    return ended;
  };
  return { stdout: () => stdout!.bytes().toString(), stderr: () => stderr!.bytes().toString(), ended, exit };
}

const terminal = { isTTY: true, columns: 80 };

/** The command line in this process, with nothing of its environment. */
export function createCli(t: ExecutionContext, settings: Record<string, string>, clock?: Pick<Clock, 'now'>) {
  return {
    ...cliWith(t, settings, (args, env) => startHere(args, env, {}, clock).ended),
    /** The same on a terminal of 80 columns. */
    onTerminal: cliWith(t, settings, (args, env) => startHere(args, env, terminal, clock).ended).cli,
    /** The same on a terminal of another size. */
    onTerminalOf: (columns: number, rows: number) =>
      cliWith(t, settings, (args, env) => startHere(args, env, { isTTY: true, columns, rows }, clock).ended)
        .cli,
    /** Starts a command that has no end, or lasts; it ends with the test. */
    start(...args: string[]) {
      const started = startHere(args, environment(settings));
      t.teardown(started.exit);
      return started;
    },
    startOnTerminal(...args: string[]) {
      const started = startHere(args, environment(settings), terminal);
      t.teardown(started.exit);
      return started;
    },
  };
}

/** The command line as a process of its own for each command, with nothing of our environment but the PATH. */
export function createProcessCli(t: ExecutionContext, settings: Record<string, string>) {
  return cliWith(t, settings, (args, env) => run(postern, args, env));
}

function environment(settings: Record<string, string>) {
  return { PATH: process.env.PATH, POSTERN_HOSTNAME: 'mail.postern.invalid', ...settings };
}

type Run = (args: string[], env: NodeJS.ProcessEnv) => Promise<Answer>;

/** `command` is split at its spaces, `args` are not. */
function cliWith(t: ExecutionContext, settings: Record<string, string>, runWith: Run) {
  const env = environment(settings);
  const cli = (command: string, ...args: string[]) =>
    runWith([...command.split(' ').filter((word) => word !== ''), ...args], env);
  return {
    env,
    cli,
    /** What --json prints, of a command that must succeed without a word on standard error. */
    async json(command: string, ...args: string[]) {
      const { code, stdout, stderr } = await cli(command, ...args, '--json');
      t.deepEqual({ code, stderr }, { code: 0, stderr: '' }, command);
      return JSON.parse(stdout.toString());
    },
    /** What standard error says, in one line, of a command that must fail with nothing on standard output. */
    async refusal(code: 1 | 2, command: string, ...args: string[]) {
      const answer = await cli(command, ...args);
      t.deepEqual([answer.code, answer.stdout.toString()], [code, ''], `${command}: ${answer.stderr}`);
      t.regex(answer.stderr, /^postern: [^\n]+\n$/);
      return answer.stderr;
    },
  };
}

/** A database and a secret, as the first start of a server leaves them. */
export async function makeInstallation(dataDir: string): Promise<void> {
  await mkdir(dataDir, { recursive: true });
  await createMigrated('sqlite', dataDir);
  writeSecrets(secretFile(dataDir), [newSecret()]);
}

/** On a database that a server has made, with the organization Acme. */
export async function startCli(t: ExecutionContext, settings: Record<string, string> = {}) {
  const dataDir = await temporaryDirectory(t);
  await makeInstallation(dataDir);
  const cli = createCli(t, { POSTERN_DATA_DIR: dataDir, ...settings });
  return { ...cli, dataDir, acme: await cli.json('org create --name Acme') };
}

/** On the database of a running server. `clock`: instead of the real one, which a world with hands of its own is ahead of. */
export function cliOf(t: ExecutionContext, { config }: Pick<World, 'config'>, clock?: Pick<Clock, 'now'>) {
  const { dataDir, databaseUrl, dnsServers } = config;
  const settings = {
    POSTERN_DATA_DIR: dataDir,
    POSTERN_DNS_SERVERS: dnsServers.join(' '),
    ...(databaseUrl && { POSTERN_DATABASE_URL: databaseUrl }),
  };
  return createCli(t, settings, clock);
}
