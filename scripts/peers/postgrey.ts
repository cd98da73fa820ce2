/**
 * Debian's postgrey, a greylisting policy service for Postfix, with a database of its own and without the lists of
 * those whom it usually spares. Only Postfix's configuration knows it; nothing of the system's is touched.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, listens } from './ports.ts';
import { serve } from './serve.ts';

export interface Postgrey {
  version: string;
  /** What Postfix is to be given as a restriction. */
  restriction: string;
  log(): string;
  stop(): Promise<unknown>;
}

const run = promisify(execFile);

/** `directory` exists, and may be entered by everybody. */
export async function startPostgrey(directory: string, delaySeconds: number): Promise<Postgrey> {
  const [database, nobody] = [join(directory, 'postgrey'), join(directory, 'nobody')];
  await run('install', ['-d', '-o', 'postgrey', database]);
  await writeFile(nobody, '');
  const { stdout } = await run('postgrey', ['--version']);
  const host = '127.0.0.1';
  const port = await freePort(host);
  const options = {
    inet: `${host}:${port}`,
    dbdir: database,
    pidfile: join(database, 'pid'),
    delay: String(delaySeconds),
    'whitelist-clients': nobody,
    'whitelist-recipients': nobody,
  };
  const given = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const server = await serve(['postgrey', ...given], () => listens(host, port));
  return { version: stdout.trim(), restriction: `check_policy_service inet:${host}:${port}`, ...server };
}
