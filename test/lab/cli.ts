/**
 * The command line as its users have it: a process, its arguments, its exit code, and what stands on which stream.
 */
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { newSecret, secretFile, writeSecrets } from '../../src/base/secrets.ts';
import { createMigrated } from './database/databases.ts';
import { temporaryDirectory } from './evidence.ts';
import type { World } from './scenes/world.ts';

export const root = join(import.meta.dirname, '../..');
export const postern = join(root, 'scripts/postern');

export async function directory(t: ExecutionContext): Promise<string> {
  const path = await temporaryDirectory(t);
  return path;
}

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

/** The command line with nothing of the surroundings but the PATH. `command` is parted at its spaces, `args` are not. */
export function createCli(t: ExecutionContext, settings: Record<string, string>) {
  const env = { PATH: process.env.PATH, POSTERN_HOSTNAME: 'mail.postern.invalid', ...settings };
  const cli = (command: string, ...args: string[]) =>
    run(postern, [...command.split(' ').filter((word) => word !== ''), ...args], env);
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
  const dataDir = await directory(t);
  await makeInstallation(dataDir);
  const cli = createCli(t, { POSTERN_DATA_DIR: dataDir, ...settings });
  return { ...cli, dataDir, acme: await cli.json('org create --name Acme') };
}

/** On the database of a running server. */
export function cliOf(t: ExecutionContext, { config }: World) {
  const { dataDir, databaseUrl, dnsServers } = config;
  return createCli(t, {
    POSTERN_DATA_DIR: dataDir,
    POSTERN_DNS_SERVERS: dnsServers.join(' '),
    ...(databaseUrl && { POSTERN_DATABASE_URL: databaseUrl }),
  });
}
