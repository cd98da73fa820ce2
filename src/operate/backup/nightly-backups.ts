/**
 * A backup of the SQLite database each night, in the quiet hour of the server's local time, and the last ones kept. Several
 * servers start at different minutes. A backup that fails is reported with what to do, and tried again an hour later while it is
 * night; the older backups stay. After missed nights, the next hour makes it up.
 *
 * The copy is one long read, during which the write-ahead log grows; it is given up before that takes much of the disk.
 */
import { mkdirSync, statSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatBytes } from '#operate/doctor/checks/disk.ts';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import type { Config } from '#platform/settings/config.ts';
import { type Backing, BackupError, makeBackup, partial } from './make-backup.ts';

export interface NightlyParts {
  config: Pick<Config, 'dataDir' | 'backups' | 'backupDir' | 'secret' | 'minFreeSpace'>;
  /** The name of this data directory: others may use the same directory for backups. */
  node: string;
  secrets: Backing['secrets'];
  freeBytes(directory: string): Promise<number>;
  /** From 0 to 1: the minute of the quiet hour. */
  random(): number;
  clock: Clock;
  log: { info(text: string): void };
  onError(what: string, error: unknown): void;
}

const hourMs = 3_600_000;
/** From three to four at night; a time that a change to summer time skips becomes the one after it. */
const quietHour = 3;
/** Until then a failed backup is tried again. */
const nightMs = 3 * hourMs;
/** Older than this, a backup is made at any hour. */
const missedMs = 48 * hourMs;
const intervalMs = 600_000;
/** The pause after a step of the copy, in times of its duration. */
const pauseFactor = 3;
/** The write-ahead log may grow to this size during a copy. */
const maxLogBytes = 2 ** 30;

/** The directory of the nightly backups. */
export function backupDirectory({ dataDir, backupDir }: Pick<Config, 'dataDir' | 'backupDir'>): string {
  return backupDir ?? join(dataDir, 'backups');
}

/** Whether a backup is due. `latestAt`: when the newest one was made, or the server was started if there is none. */
export function isBackupDue(now: number, latestAt: number, share: number): boolean {
  const start = new Date(now);
  start.setHours(quietHour, Math.floor(share * 60), 0, 0);
  const isNight = now >= start.getTime() && now < start.getTime() + nightMs;
  return (isNight && latestAt < start.getTime()) || now - latestAt > missedMs;
}

/** Returns a function that stops them; a copy under way is given up. */
export function startNightlyBackups(parts: NightlyParts): () => Promise<void> {
  const { config, clock, log, onError } = parts;
  const directory = backupDirectory(config);
  const share = parts.random();
  const startedAt = clock.now();
  const stopping = new AbortController();
  let failedAt = Number.NEGATIVE_INFINITY;
  let running = Promise.resolve();
  let cancel = () => {};

  async function backUpIfDue(): Promise<void> {
    const now = clock.now();
    const names = await ownBackups(parts, directory);
    // A backup that a clock that was ahead has made says nothing about the nights until then.
    const latestAt = names.map(timeOf).findLast((at) => at <= now) ?? startedAt;
    if (!isBackupDue(now, latestAt, share) || isRecent(failedAt, now, hourMs)) return;
    try {
      const file = await backUp(parts, directory, stopping.signal);
      log.info(`backed up to ${file}`);
    } catch (error) {
      if (stopping.signal.aborted) return;
      failedAt = now;
      onError('there is no backup of this night; trying again in an hour (POSTERN_BACKUPS)', error);
    }
  }

  const later = () => {
    if (stopping.signal.aborted) return;
    cancel = clock.after(intervalMs, () => {
      running = backUpIfDue().finally(later);
    });
  };
  later();
  return async () => {
    stopping.abort();
    cancel();
    await running;
  };
}

async function backUp(parts: NightlyParts, directory: string, signal: AbortSignal): Promise<string> {
  const { config, clock, secrets } = parts;
  await prepare(parts, directory);
  const stopped = new AbortController();
  let steppedAt = performance.now();
  const onProgress = async () => {
    // Mail is under way at night as well, and waits for the same disk.
    await sleep(pauseFactor * (performance.now() - steppedAt));
    steppedAt = performance.now();
    const log = statSync(join(config.dataDir, 'postern.sqlite-wal'), { throwIfNoEntry: false });
    if ((log?.size ?? 0) < maxLogBytes) return;
    stopped.abort(
      new BackupError(
        'so much mail came during the copy that it was given up; set POSTERN_BACKUPS=off, and back up by snapshots of the file system',
      ),
    );
  };
  const file = join(directory, `${prefixOf(parts)}${stampOf(clock.now())}.sqlite`);
  const backing = {
    dataDir: config.dataDir,
    secrets,
    now: clock.now,
    onProgress,
    signal: AbortSignal.any([signal, stopped.signal]),
  };
  await makeBackup(backing, { file, secret: config.secret === null ? `${file}.secret` : null });
  const names = await ownBackups(parts, directory);
  for (const name of names.slice(0, -config.backups!)) {
    await rm(join(directory, `${name}.secret`), { force: true });
    await rm(join(directory, name));
  }
  return file;
}

/** Makes the directory, removes what a killed process has left in it, and requires room for one more backup. */
async function prepare(parts: NightlyParts, directory: string): Promise<void> {
  const { dataDir, minFreeSpace } = parts.config;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new BackupError(
      `${directory} cannot be made: ${(error as Error).message}; set POSTERN_BACKUP_DIR to a directory that the service may write to (docs/operations.md)`,
    );
  }
  for (const name of await readdir(directory)) {
    if (name.startsWith(prefixOf(parts)) && name.includes(partial))
      await rm(join(directory, name), { recursive: true });
  }
  const { size } = statSync(join(dataDir, 'postern.sqlite'));
  const free = await parts.freeBytes(directory);
  if (free < size + 2 * minFreeSpace)
    throw new BackupError(
      `${directory} has ${formatBytes(free)} left, and a backup needs ${formatBytes(size + 2 * minFreeSpace)}; make room, lower POSTERN_BACKUPS, or set POSTERN_BACKUP_DIR to another disk`,
    );
}

const prefixOf = ({ node }: Pick<NightlyParts, 'node'>) => `postern-${node.slice(0, 8)}-`;

/** The oldest first. */
async function ownBackups(parts: Pick<NightlyParts, 'node'>, directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  return names
    .filter((name) => name.startsWith(prefixOf(parts)) && /\d{8}T\d{6}Z\.sqlite$/.test(name))
    .sort();
}

/** 20261126T031204Z */
const stampOf = (at: number) => new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');

function timeOf(name: string): number {
  return Date.parse(
    name.slice(-23, -7).replace(/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z/, '$1-$2-$3T$4:$5:$6Z'),
  );
}
