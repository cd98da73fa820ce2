/**
 * Debian's postgrey, a greylisting policy service for Postfix, with its own database and without its lists of clients that are
 * not greylisted. Only the configuration of the private Postfix refers to it; the system's own is not touched.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, listens } from '../load/ports.ts';
import { serve } from './serve.ts';

export interface Postgrey {
  version: string;
  /** The restriction for Postfix's configuration. */
  restriction: string;
  log(): string;
  stop(): Promise<unknown>;
}

const run = promisify(execFile);

/** `directory` must exist and be accessible to all users. */
export async function startPostgrey(directory: string, delaySeconds: number): Promise<Postgrey> {
  const [database, emptyFile] = [join(directory, 'postgrey'), join(directory, 'nobody')];
  await run('install', ['-d', '-o', 'postgrey', database]);
  await writeFile(emptyFile, '');
  const { stdout } = await run('postgrey', ['--version']);
  const host = '127.0.0.1';
  const port = await freePort(host);
  const options = {
    inet: `${host}:${port}`,
    dbdir: database,
    pidfile: join(database, 'pid'),
    delay: String(delaySeconds),
    'whitelist-clients': emptyFile,
    'whitelist-recipients': emptyFile,
  };
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const server = await serve(['postgrey', ...args], () => listens(host, port));
  return { version: stdout.trim(), restriction: `check_policy_service inet:${host}:${port}`, ...server };
}
