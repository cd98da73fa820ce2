/**
 * The outside world of the checks: mail hosts to connect to, time servers, blocklists, the file system. Tests replace them;
 * there are no settings for them.
 */
import { randomBytes } from 'node:crypto';
import { statfsSync } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type Blocklist, wellKnownBlocklists } from '#operate/doctor/checks/blocklists.ts';
import type { Environment } from '#platform/settings/setting-sources.ts';

/** In milliseconds. The longest chain (DNS lookup, SMTP session, DNS lookup) stays below `all`. */
interface Timeouts {
  /** One DNS lookup. It may take half as long again, because the second try waits twice as long as the first. */
  dns: number;
  connect: number;
  /** From the connection to the reply to EHLO. */
  greeting: number;
  /** The answer of a time server. */
  time: number;
  database: number;
  /** The whole run. */
  all: number;
}

export interface Surroundings {
  /** Domains whose mail hosts show whether port 25 is open. */
  probes: string[];
  /** A name whose A record is signed by DNSSEC. */
  signedName: string;
  /** `HOST:PORT` each. */
  timeServers: string[];
  blocklists: Blocklist[];
  /** The port that other servers deliver returned mail to. */
  returnPort: number;
  timeouts: Timeouts;
  env: Environment;
  /** The addresses of this server's interfaces. */
  ownAddresses(): string[];
  /** Bytes that the file system of a directory has left for this user. */
  freeBytes(directory: string): Promise<number>;
  /** How long each of some small synced writes took, in milliseconds. */
  syncTimes(directory: string): Promise<number[]>;
  /** How many files this process may have open; null if the system does not say. */
  openFiles(): Promise<number | null>;
}

export const realSurroundings: Surroundings = {
  probes: ['gmail.com', 'outlook.com', 'yahoo.com', 'icloud.com'],
  signedName: 'ietf.org',
  timeServers: ['time.cloudflare.com:123', 'pool.ntp.org:123'],
  blocklists: wellKnownBlocklists,
  returnPort: 25,
  timeouts: { dns: 2_000, connect: 4_000, greeting: 4_000, time: 3_000, database: 5_000, all: 15_000 },
  env: process.env,
  ownAddresses,
  freeBytes,
  syncTimes,
  openFiles,
};

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}

/** The kernel has the answer in memory, and another thread would have to be woken for it each second (disk-guard.ts). */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** Does what every commit of a database does: append, and wait for the disk. */
async function syncTimes(directory: string): Promise<number[]> {
  const file = join(directory, `doctor-${randomBytes(6).toString('hex')}`);
  const page = Buffer.alloc(4096);
  const handle = await open(file, 'wx', 0o600);
  try {
    const times: number[] = [];
    for (let n = 0; n < 7; n++) {
      const began = performance.now();
      await handle.write(page);
      await handle.datasync();
      times.push(performance.now() - began);
    }
    return times;
  } finally {
    await handle.close();
    await rm(file, { force: true });
  }
}

async function openFiles(): Promise<number | null> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  if (soft === undefined) return null;
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}
