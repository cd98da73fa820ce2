/**
 * The database: SQLite in the data directory, or PostgreSQL by URL. This folder holds the only knex of the program.
 *
 * Owns the connection and its promises: SQLite in WAL mode with synchronous FULL, so that a commit is on disk when
 * it returns; foreign keys enforced; a writer waits for another process's (the command line's) instead of failing.
 * PostgreSQL commits are synchronous too (postgres.ts). Both hand out bigints as numbers: all of ours are times in
 * milliseconds or counts, far below 2^53.
 */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import knex, { type Knex } from 'knex';
import { SqliteClient } from '../../vendor/knex.ts';
import { openPostgres } from './postgres.ts';

export type Db = Knex;
export type Trx = Knex.Transaction;

/** What an operator can do about a database that does not open, in one line. */
export class DatabaseError extends Error {}

/**
 * Everything that knex would print is in the error that it throws as well: the statement, and not its values, which are
 * people's mails.
 */
const habits = {
  log: { debug() {}, warn() {}, error() {}, deprecate() {} },
  compileSqlOnError: false,
};

const busyTimeoutMs = 10_000;

/** Of SQLite's own pages: what the indexes of a long queue need, without asking the system for each. */
const cacheKiB = 16_000;
/**
 * Of 4 KiB. What a transaction writes stays in memory until its commit, up to 160 MB: so a disk that is full is met by the
 * COMMIT alone. Met by a statement among others (parallel.ts), SQLite rolls back there and then, and each that follows
 * would be a transaction of its own. Sends under way have 64 MB of bodies (api/admission.ts). BUGS: tracked mails, of which each
 * recipient has a copy, can be more.
 */
const pagesInMemory = 40_000;
/**
 * After how many pages, of 4 KiB, the log goes into the database. A page that is written again and again goes there once
 * in 16 MB instead of once in 4. Where the disk is nearly full that is too long: what the log holds has to find room in the
 * database before the log can be begun anew, and until then the log itself grows into what room there is.
 */
const pagesOfLog = { fallback: 4_000, short: 250 };
/**
 * While somebody reads one state of the database for long, as a backup does, the log cannot be begun anew and grows. Then it
 * gives back what it has beyond this, or a disk that it had filled would stay full.
 */
const largestLog = 32 * 1024 * 1024;

function sqlite(file: string): Knex {
  return knex({
    client: SqliteClient as unknown as typeof Knex.Client,
    connection: { filename: file },
    useNullAsDefault: true,
    ...habits,
    pool: {
      min: 1,
      max: 1,
      afterCreate(connection: { exec(sql: string, done: (error: Error | null) => void): void }, done: never) {
        connection.exec(
          `pragma busy_timeout = ${busyTimeoutMs};
           pragma journal_mode = wal;
           pragma synchronous = full;
           pragma foreign_keys = on;
           pragma cache_size = -${cacheKiB};
           pragma cache_spill = ${pagesInMemory};
           pragma wal_autocheckpoint = ${pagesOfLog.fallback};
           pragma journal_size_limit = ${largestLog};`,
          (error) => (done as (error: Error | null, connection: unknown) => void)(error, connection),
        );
      },
    },
  });
}

/** For as long as the disk is nearly full. PostgreSQL sees to its log itself. */
export async function keepLogShort(db: Db, isShort: boolean): Promise<void> {
  if (isPostgres(db)) return;
  await db.raw(`pragma wal_autocheckpoint = ${isShort ? pagesOfLog.short : pagesOfLog.fallback}`);
}

/** In bytes, what the log has grown beyond what it keeps: it needs as much room in the database before it gives that back. */
export async function excessOfLog(place: Place): Promise<number> {
  if (place.databaseUrl) return 0;
  // It is not there before the first write.
  const log = await stat(`${fileIn(place.dataDir)}-wal`).catch(() => ({ size: 0 }));
  return Math.max(log.size - largestLog, 0);
}

/** Answers whether the file that is open now is still at its place; PostgreSQL's files are its own affair. */
export async function watchFile(place: Place): Promise<() => Promise<boolean>> {
  if (place.databaseUrl) return async () => true;
  const file = fileIn(place.dataDir);
  const { dev, ino } = await stat(file);
  return async () => {
    const now = await stat(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    return now?.ino === ino && now.dev === dev;
  };
}

export function isPostgres(db: Db): boolean {
  return db.client.config.client === 'pg';
}

interface Place {
  dataDir: string;
  databaseUrl: string | null;
  /** What the URL was given by. */
  givenBy?: string;
  /** To PostgreSQL, at once. */
  databaseConnections?: number;
}

const defaultConnections = 10;

const fileIn = (dataDir: string) => join(dataDir, 'postern.sqlite');

/** Null where there is none yet: SQLite would make one. */
export async function openExisting(config: Place): Promise<Db | null> {
  const isThere = config.databaseUrl !== null || existsSync(fileIn(config.dataDir));
  return isThere ? openDatabase(config) : null;
}

/** Opens the database and asks it one question, so that a wrong URL or a broken file is named at the start. `patienceMs`: for PostgreSQL. */
export async function openDatabase(config: Place, timeoutMs: number | null = null): Promise<Db> {
  const file = fileIn(config.dataDir);
  const { databaseUrl, databaseConnections: connections = defaultConnections } = config;
  const db = databaseUrl ? openPostgres(databaseUrl, { timeoutMs, connections, habits }) : sqlite(file);
  try {
    await db.raw(config.databaseUrl ? 'select 1' : 'select count(*) from sqlite_master');
    return db;
  } catch (error) {
    await db.destroy();
    throw new DatabaseError(
      config.databaseUrl
        ? `the database of ${config.givenBy ?? 'POSTERN_DATABASE_URL'} cannot be used: ${reasonOf(error)}; check that it runs, and the URL's user, password and name`
        : `${file} cannot be used: ${reasonOf(error)}; check its permissions, and the disk and its room, or restore it from a backup`,
    );
  }
}

/** knex puts the statement before the reason, and Node groups refused addresses; the reason alone is what helps. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map((inner) => reasonOf(inner)).join(', ');
  const message = error instanceof Error ? error.message : String(error);
  return message.split(' - ').at(-1) ?? message;
}
