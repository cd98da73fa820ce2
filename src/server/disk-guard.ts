/**
 * The low-space guard: while the file system of the data directory has less free space than POSTERN_MIN_FREE_SPACE, new
 * mail is refused, so that the outcomes of accepted mail can still be recorded. Accepts again by itself. New mail is also
 * refused while the database file is not at its path: writes to a removed file are lost with the process.
 *
 * When space is short, SQLite's write-ahead log (WAL) is kept short. If it has grown nevertheless, because a reader such as
 * a backup holds it, the space that its checkpoint will need in the database counts as used.
 *
 * Checks once a second, and ten times a second if one second of mail could use up the spare space; callers get the last
 * result. If the free space cannot be read, the last known value holds. On PostgreSQL this guards the disk of the logs
 * only; a full disk of the database server shows as failing commits.
 */
import { type Clock, untilPoll } from '#platform/base/clock.ts';
import type { Log } from '#platform/base/log.ts';

export interface DiskGuardParts {
  dataDir: string;
  /** Required free bytes; 0 disables the check. */
  min: number;
  freeBytes(directory: string): Promise<number>;
  /** Bytes that the next checkpoint of the WAL will take from the free space. */
  excessOfLog(): number;
  keepLogShort(isShort: boolean): Promise<void>;
  /** Whether the database file is still the one that was opened. */
  isInPlace(): boolean;
  clock: Clock;
  log: Pick<Log, 'error' | 'info' | 'warn'>;
}

type Mode = 'accepting' | 'low space' | 'file missing';

const intervalMs = 1000;
const shortIntervalMs = 100;
/** 3,000 mails of 4 KB, or 1,000 of 40 KB: in the database and in its WAL. */
const bytesPerSecond = 64 * 1024 * 1024;
/** Ten times the usual limit of the WAL. */
const shortLogBelow = 160 * 1024 * 1024;

export class DiskGuard {
  readonly #parts: DiskGuardParts;
  #mode: Mode = 'accepting';
  #freeSpace: number | null = null;
  /** Free bytes above the minimum, as last known. */
  #spare = Number.POSITIVE_INFINITY;
  #isReadable = true;
  #isLogShort = false;
  #settingLog: Promise<void> = Promise.resolve();
  #checking: Promise<void> = Promise.resolve();
  #cancel = () => {};
  #stopped = false;

  constructor(parts: DiskGuardParts) {
    this.#parts = parts;
  }

  hasSpace(): boolean {
    return this.#mode === 'accepting';
  }

  /** Why mail is refused, for the operator; null if it is accepted. */
  obstacle(): string | null {
    if (this.#mode === 'accepting') return null;
    return this.#mode === 'low space'
      ? "the data directory's disk has too little space"
      : "the database's file has been removed from the data directory, or replaced";
  }

  /** In bytes, at most one second old; null if it cannot be read. */
  freeSpace(): number | null {
    return this.#freeSpace;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#checking;
    await this.#settingLog;
  }

  /** Checks now, and schedules the next check. */
  async check(): Promise<void> {
    const { dataDir, clock, log } = this.#parts;
    try {
      await this.#measure();
      this.#isReadable = true;
    } catch (error) {
      if (this.#isReadable) log.warn({ err: error }, `the free space of ${dataDir} cannot be read`);
      this.#isReadable = false;
      this.#freeSpace = null;
    }
    if (this.#stopped) return;
    const mayFillSoon = this.#spare >= 0 && this.#spare < bytesPerSecond;
    this.#cancel = clock.after(untilPoll(clock.now(), mayFillSoon ? shortIntervalMs : intervalMs), () => {
      this.#checking = this.check();
    });
  }

  async #measure(): Promise<void> {
    const { isInPlace, freeBytes, excessOfLog, dataDir, min } = this.#parts;
    const hasFile = isInPlace();
    if (!hasFile) this.#enter('file missing');
    else if (this.#mode === 'file missing') this.#enter(this.#spare < 0 ? 'low space' : 'accepting');
    const free = await freeBytes(dataDir);
    this.#freeSpace = free;
    const owed = excessOfLog();
    this.#spare = free - owed - min;
    if (hasFile) this.#enter(this.#spare < 0 ? 'low space' : 'accepting', owed);
    this.#setLogLength(free < shortLogBelow);
  }

  #enter(mode: Mode, owed = 0): void {
    const from = this.#mode;
    if (mode === from) return;
    const { dataDir, log, min } = this.#parts;
    this.#mode = mode;
    const free = this.#freeSpace === null ? 'too little' : megabytes(this.#freeSpace);
    if (mode === 'file missing') {
      log.error(
        `the database’s file has been removed from ${dataDir} or replaced: new mail is refused with 429, because it ` +
          'would be lost with this process; put the file back, or stop Postern and restore a backup',
      );
    }
    if (from === 'file missing') log.info('the database’s file is back in its place');
    if (mode === 'low space') {
      const need = `the database’s log will need ${megabytes(owed)} of it, and grows while it is read`;
      log.error(
        `${dataDir} has ${free} left${owed > 0 ? ` (${need})` : ''}, less than POSTERN_MIN_FREE_SPACE (${megabytes(min)}): ` +
          'new mail is refused with 429; free some disk space; accepted mail is still delivered',
      );
    }
    if (from === 'low space' && mode === 'accepting')
      log.info(`${dataDir} has ${free} left: new mail is accepted again`);
  }

  /** In the order of the calls, because the last one must hold; not awaited, because checks must not wait for the database. */
  #setLogLength(isShort: boolean): void {
    if (isShort === this.#isLogShort) return;
    this.#isLogShort = isShort;
    this.#settingLog = this.#settingLog
      .then(() => this.#parts.keepLogShort(isShort))
      .catch((error) => {
        this.#isLogShort = !isShort;
        this.#parts.log.warn({ err: error }, 'the length of the database’s log cannot be set; trying again');
      });
  }
}

/** Resolves after the first check. */
export async function startDiskGuard(parts: DiskGuardParts): Promise<DiskGuard> {
  const guard = new DiskGuard(parts);
  await guard.check();
  return guard;
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024)} MiB`;
}
