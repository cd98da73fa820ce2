/**
 * The low-space guard: while the data directory's file system has less room than POSTERN_MIN_FREE_SPACE, no new mail
 * is taken, so that the outcomes of what has been taken can still be recorded. Opens again by itself.
 *
 * Where there is little room for the database's log, that is kept short, whatever the setting. Where it has grown all the
 * same, because somebody reads for long (a backup), the room that it will need in the database is taken for gone.
 *
 * Nor is mail taken where the database's file is no longer at its place: what is written into a removed file is gone with
 * the process.
 *
 * Looks once a second, and ten times where a second's mail could take all that is left above the least; never when
 * asked. Where the room cannot be told, what was known last holds. On PostgreSQL it guards the logs' disk; a database whose
 * own disk is full shows as commits that fail.
 */
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';

export interface DiskGuardParts {
  dataDir: string;
  /** The least room in bytes; 0: any will do. */
  min: number;
  /** What is free there for us. */
  freeBytes(directory: string): Promise<number>;
  /** What the database's log will need of it. */
  excessOfLog(): Promise<number>;
  /** Keeps the database's log short, or no longer. */
  keepLogShort(isShort: boolean): Promise<void>;
  /** Whether the database's file is where it was opened. */
  isInPlace(): Promise<boolean>;
  clock: Clock;
  log: Pick<Log, 'error' | 'info' | 'warn'>;
}

export interface DiskGuard {
  hasSpace(): boolean;
  /** Why it has none, for the operator; null where it has. */
  obstacle(): string | null;
  /** In bytes, a second ago at most; null where it cannot be told. */
  freeSpace(): number | null;
  stop(): Promise<void>;
}

const intervalMs = 1000;
const closelyMs = 100;
/** Three thousand mails of 4 KB, or a thousand of 40: in the database and in its log. */
const aSecondsMail = 64 * 1024 * 1024;
/** Ten times as much as the log is usually let grow to. */
const littleRoom = 160 * 1024 * 1024;

/** Resolves when it has looked for the first time. */
export async function startDiskGuard(parts: DiskGuardParts): Promise<DiskGuard> {
  const { dataDir, min, clock, log } = parts;
  let isLow = false;
  let isAstray = false;
  /** What is left above the least. */
  let spare = Number.POSITIVE_INFINITY;
  let isBlind = false;
  let isLogShort = false;
  let known: number | null = null;
  let stopped = false;
  let looking: Promise<void> = Promise.resolve();
  let fitting: Promise<void> = Promise.resolve();
  let cancel = () => {};

  async function look(): Promise<void> {
    try {
      tellPlace(await parts.isInPlace());
      known = await parts.freeBytes(dataDir);
      tell(known, await parts.excessOfLog());
      fitLog(known);
      isBlind = false;
    } catch (error) {
      if (!isBlind) log.warn({ err: error }, `the free space of ${dataDir} cannot be told`);
      isBlind = true;
      known = null;
    }
    const isClosely = !isLow && spare < aSecondsMail;
    if (!stopped) cancel = clock.after(isClosely ? closelyMs : intervalMs, () => (looking = look()));
  }

  /** One after the other, for the last is to hold; and whoever waits for the database here would not see the room go. */
  function fitLog(free: number): void {
    const isLittle = free < littleRoom;
    if (isLittle === isLogShort) return;
    isLogShort = isLittle;
    fitting = fitting
      .then(() => parts.keepLogShort(isLittle))
      .catch((error) => {
        isLogShort = !isLittle;
        log.warn({ err: error }, 'the length of the database’s log cannot be set; trying again');
      });
  }

  function tell(free: number, owed: number): void {
    const wasLow = isLow;
    spare = free - owed - min;
    isLow = spare < 0;
    const needed =
      owed > 0 ? ` (the database’s log will need ${megabytes(owed)} there, and grows while it is read)` : '';
    if (isLow && !wasLow) {
      log.error(
        `${dataDir} has ${megabytes(free)} left${needed}, less than POSTERN_MIN_FREE_SPACE (${megabytes(min)}): new mail ` +
          'is refused with 429 until there is more; make room there, what was taken is still delivered',
      );
    }
    if (wasLow && !isLow) log.info(`${dataDir} has ${megabytes(free)} left: new mail is taken again`);
  }

  function tellPlace(isInPlace: boolean): void {
    const wasAstray = isAstray;
    isAstray = !isInPlace;
    if (isAstray && !wasAstray) {
      log.error(
        `the database’s file has been removed from ${dataDir}, or another put in its place: new mail is refused with 429, ` +
          'for it would be lost with this process; put the file back, or stop Postern and restore a backup',
      );
    }
    if (wasAstray && !isAstray) log.info('the database’s file is back in its place: new mail is taken again');
  }

  function obstacle(): string | null {
    if (isAstray) return "the database's file has been removed from the data directory, or replaced";
    return isLow ? "the data directory's disk has too little space" : null;
  }

  await look();
  return {
    hasSpace: () => obstacle() === null,
    obstacle,
    freeSpace: () => known,
    async stop() {
      stopped = true;
      cancel();
      await looking;
      await fitting;
    },
  };
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024)} MiB`;
}
