/**
 * Postern for the scripts: in its own directory, between a DNS server and MX hosts on loopback, with an organization that may
 * send from sender.invalid without limits. `startPostern` runs it in this process, `launchPostern` in a separate process, for
 * measurements. Both stop with the stage. The process is killed, because its directory is about to be removed.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { telemetry } from '#mail/record/telemetry.ts';
import type { Log } from '#platform/base/log.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { start } from '#server/start.ts';
import type { Dns } from '../dns/dns.ts';
import type { Stage } from '../load/stage.ts';
import { until } from '../until.ts';
import { type PosternProcess, startProcess } from './process.ts';
import { createTenant, testConfig, testSettings } from './world.ts';

export type Email = ReturnType<typeof telemetry>;

export interface Environment {
  dns: Dns;
  mtaPort: number;
  settings?: Record<string, string>;
  /** If absent, SQLite in the data directory. */
  databaseUrl?: string | null;
}

export interface Postern {
  url: string;
  dataDir: string;
  db: Db;
  /** The organization's API key. */
  key: string;
  /** Creates another organization that may send from sender.invalid; returns its key. */
  addTenant(): Promise<string>;
  /** Sends a mail and returns the response. Rejects if it is not 200. */
  send(fields: object): Promise<{ emailId: string }>;
  get(emailId: string): Promise<Email>;
  /** Waits until the email's status is none of `passing`; returns the email. */
  after(passing: string[], emailId: string, timeoutMs?: number): Promise<Email>;
}

type Process = Pick<PosternProcess, 'url' | 'pid' | 'end'>;

export async function startPostern(stage: Stage, environment: Environment, log?: Log): Promise<Postern> {
  const config = testConfig(inside(stage, environment), environment.settings);
  const { url } = await stage.start(start(config, log && { log }), (postern) => postern.stop());
  return furnish(stage, url, config, environment.dns);
}

/** Runs as a separate process, which `launch` starts; `rssMb` returns its current memory. */
export async function launchPostern(
  stage: Stage,
  environment: Environment,
  launch: (settings: Record<string, string>) => Promise<Process> = startProcess,
): Promise<Postern & { pid: number; rssMb(): Promise<number> }> {
  const where = inside(stage, environment);
  // With a higher level than info it would not log its address.
  const settings = { ...environment.settings, POSTERN_LOG_LEVEL: 'info' };
  const { url, pid } = await stage.start(launch(testSettings(where, settings)), (postern) =>
    postern.end('SIGKILL'),
  );
  const postern = await furnish(stage, url, testConfig(where, settings), environment.dns);
  return { ...postern, pid, rssMb: () => rssMb(pid) };
}

function inside(stage: Stage, { dns, mtaPort, databaseUrl = null }: Environment) {
  return { dataDir: join(stage.directory, 'postern'), databaseUrl, dns, mtaPort };
}

async function furnish(stage: Stage, url: string, config: Config, dns: Dns): Promise<Postern> {
  const db = await stage.start(openDatabase(config), (open) => open.destroy());
  const addTenant = () => createTenant(db, config, dns, { withoutLedger: true });
  const key = await addTenant();
  const call = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}/api/public/email/${path}`, {
      headers,
      signal: stage.interrupted,
      ...init,
    });
    const body = await response.json();
    if (!response.ok) throw new Error(`HTTP ${response.status} from ${path}: ${JSON.stringify(body)}`);
    return body;
  };
  const get = async (emailId: string) => (await call(emailId)) as Email;
  return {
    url,
    dataDir: config.dataDir,
    db,
    key,
    addTenant,
    async send(fields) {
      const body = JSON.stringify({ from: 'Shop <shop@sender.invalid>', ...fields });
      return (await call('send', { method: 'POST', body })) as { emailId: string };
    },
    get,
    async after(passing, emailId, timeout = 10_000) {
      let email: Email | undefined;
      await until(
        async () => {
          email = await get(emailId);
          return !passing.includes(email.status);
        },
        { timeout, what: () => `the end of an email; last: ${JSON.stringify(email)}` },
      );
      return email!;
    },
  };
}

async function rssMb(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Math.round(Number(stdout) / 1024);
}
