/**
 * What the checks reach out to, each with what a real machine has: mail hosts to knock at, time servers, blocklists,
 * the file system. A test puts its own in their places; there are no settings for them.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rm, statfs } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../settings/setting-sources.ts';
import { type Blocklist, wellKnown } from './checks/blocklists.ts';

/** Milliseconds for each step; together the longest way (look up, knock, look up) stays below `all`. */
interface Patience {
  /** One look-up at DNS; the second try waits twice as long as the first, so it may take half as long again. */
  dns: number;
  connect: number;
  /** From the connection to the answer to EHLO. */
  talk: number;
  /** For time servers. */
  time: number;
  database: number;
  /** The whole run. */
  all: number;
}

export interface Surroundings {
  /** Domains whose mail hosts are knocked at, to see whether port 25 is open. */
  probes: string[];
  /** A name with an A record that is signed. */
  signedName: string;
  /** `HOST:PORT` each. */
  timeServers: string[];
  blocklists: Blocklist[];
  /** Where the world brings returned mail. */
  returnPort: number;
  patience: Patience;
  env: Environment;
  /** Addresses of this machine's interfaces. */
  ownAddresses(): string[];
  /** What the file system of a directory has left for us, in bytes. */
  freeBytes(directory: string): Promise<number>;
  /** How long some small writes took to reach the disk, each, in milliseconds. */
  syncTimes(directory: string): Promise<number[]>;
  /** How many files this process may have open; null where the system does not say. */
  openFiles(): Promise<number | null>;
}

export const realSurroundings: Surroundings = {
  probes: ['gmail.com', 'outlook.com', 'yahoo.com', 'icloud.com'],
  signedName: 'ietf.org',
  timeServers: ['time.cloudflare.com:123', 'pool.ntp.org:123'],
  blocklists: wellKnown,
  returnPort: 25,
  patience: { dns: 2_000, connect: 4_000, talk: 4_000, time: 3_000, database: 5_000, all: 15_000 },
  env: process.env,
  ownAddresses,
  freeBytes,
  syncTimes,
  openFiles,
};

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** What a commit of the database does at the least: append, and wait for the disk. */
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
