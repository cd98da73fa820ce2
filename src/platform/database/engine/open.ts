/**
 * Opens the database: SQLite in the data directory, or PostgreSQL by URL. SQLite runs in WAL mode with synchronous FULL, so
 * that a commit is on disk when it returns; foreign keys are enforced; a writer waits for another process's writer (such as
 * the command line's) instead of failing. PostgreSQL commits are synchronous too (postgres.ts). Both return bigints as
 * numbers, because all of them are times in milliseconds or counts, far below 2^53.
 */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import knex, { type Knex } from 'knex';
import { isRecent } from '#platform/base/clock.ts';
import { SqliteClient } from '#platform/vendor/knex.ts';
import type { PostgresTerms } from './postgres.ts';

export type Db = Knex;
export type Trx = Knex.Transaction;

/** An error that tells the operator in one line what is wrong with the database and what to do. */
export class DatabaseError extends Error {}

/** knex prints nothing: its errors have the same information, the statement without its values, which are private mail. */
const quiet = {
  log: { debug() {}, warn() {}, error() {}, deprecate() {} },
  compileSqlOnError: false,
};

const busyTimeoutMs = 10_000;

/** SQLite's page cache: enough for the indexes of a long queue. */
const cacheKiB = 16_000;
/**
 * Pages of 4 KiB. A transaction's writes stay in memory until its commit, up to 160 MB, so only the COMMIT fails if the disk is
 * full. If another statement failed for that, SQLite would roll back at once, and a following one would be a transaction of its
 * own. Sends in progress have 64 MB of bodies (front/http/admission.ts). BUGS: tracked mails, with a copy for each recipient,
 * can be more.
 */
const pagesInMemory = 40_000;
/**
 * After this many pages of 4 KiB, the WAL is written to the database: a page that changes often is then written once per 16 MB
 * instead of once per 4 MB. If the disk is nearly full, that is too long: the WAL can only restart when its pages fit into the
 * database, and until then it grows.
 */
const walPages = { fallback: 4_000, short: 250 };
/** The WAL cannot restart and grows during a long read, such as a backup. Afterwards it is truncated to this size. */
const maxKeptWal = 32 * 1024 * 1024;

function sqlite(file: string): Knex {
  return knex({
    client: SqliteClient as unknown as typeof Knex.Client,
    connection: { filename: file },
    useNullAsDefault: true,
    ...quiet,
    pool: {
      min: 1,
      max: 1,
      afterCreate: setUpSqlite,
      // By default it looks each second for idle connections to close, which this never is.
      reapIntervalMillis: 3_600_000,
    },
  });
}

/** SQLite needs none of its modules. */
async function postgres(url: string, terms: PostgresTerms): Promise<Knex> {
  const { openPostgres } = await import('./postgres.ts');
  return openPostgres(url, terms);
}

interface SqliteConnection {
  exec(sql: string, done: (error: NodeJS.ErrnoException | null) => void): void;
}

/**
 * Two processes may open a new file at the same time. The switch to WAL fails at once if the other one is in the middle of it,
 * whatever the busy timeout, so it is repeated.
 */
function setUpSqlite(
  connection: SqliteConnection,
  done: (error: Error | null, it: SqliteConnection) => void,
): void {
  const endsAt = performance.now() + busyTimeoutMs;
  const setUp = () =>
    connection.exec(
      `pragma busy_timeout = ${busyTimeoutMs};
       pragma journal_mode = wal;
       pragma synchronous = full;
       pragma foreign_keys = on;
       pragma cache_size = -${cacheKiB};
       pragma cache_spill = ${pagesInMemory};
       pragma wal_autocheckpoint = ${walPages.fallback};
       pragma journal_size_limit = ${maxKeptWal};`,
      (error) => {
        if (error?.code === 'SQLITE_BUSY' && performance.now() < endsAt) setTimeout(setUp, 10);
        else done(error, connection);
      },
    );
  setUp();
}

/** Keeps SQLite's WAL short while the disk is nearly full. */
export async function keepLogShort(db: Db, isShort: boolean): Promise<void> {
  if (isPostgres(db)) return;
  await db.raw(`pragma wal_autocheckpoint = ${isShort ? walPages.short : walPages.fallback}`);
}

/** Bytes of the WAL beyond its kept size. They may need as much space in the database before the WAL is truncated. */
export function excessOfLog(location: Location): number {
  if (location.databaseUrl) return 0;
  // The file does not exist before the first write.
  const log = statSync(`${fileIn(location.dataDir)}-wal`, { throwIfNoEntry: false });
  return Math.max((log?.size ?? 0) - maxKeptWal, 0);
}

/**
 * Another one than before: SQLite's WAL was written to, as by the commits of every process. The kernel has the time of that, which
 * is the same for all commits of one of its ticks; until that has passed, and without a WAL, each stamp is a new one.
 */
export function logStamp(db: Db): string {
  const log = statSync(`${db.client.config.connection.filename}-wal`, { throwIfNoEntry: false });
  if (log === undefined) return `${performance.now()}`;
  const { ino, size, mtimeMs } = log;
  // Some file systems keep whole seconds.
  const tickMs = mtimeMs % 1000 === 0 ? 1_020 : 20;
  return `${ino} ${size} ${mtimeMs} ${isRecent(mtimeMs, Date.now(), tickMs) ? performance.now() : ''}`;
}

/**
 * Returns a function that tells whether the open SQLite file is still at its path. It asks the kernel in this thread: the
 * answer is in memory, and another thread would have to be woken for it each second.
 */
export function watchFile(location: Location): () => boolean {
  if (location.databaseUrl) return () => true;
  const file = fileIn(location.dataDir);
  const { dev, ino } = statSync(file);
  return () => {
    const now = statSync(file, { throwIfNoEntry: false });
    return now?.ino === ino && now.dev === dev;
  };
}

export function isPostgres(db: Db): boolean {
  return db.client.config.client === 'pg';
}

interface Location {
  dataDir: string;
  databaseUrl: string | null;
  /** The setting or option that has the URL. */
  givenBy?: string;
  /** Maximum number of connections to PostgreSQL. */
  databaseConnections?: number;
}

const defaultConnections = 10;
/** PostgreSQL's error code; for a user with a CONNECTION LIMIT, too. */
const tooManyConnections = '53300';

const fileIn = (dataDir: string) => join(dataDir, 'postern.sqlite');

/** Null if there is no SQLite file; opening would create one. */
export async function openExisting(config: Location): Promise<Db | null> {
  const isThere = config.databaseUrl !== null || existsSync(fileIn(config.dataDir));
  return isThere ? openDatabase(config) : null;
}

/**
 * Opens the database and runs a statement, so that a wrong URL or a broken file is reported at once. `timeoutMs` is for
 * PostgreSQL.
 */
export async function openDatabase(config: Location, timeoutMs: number | null = null): Promise<Db> {
  const file = fileIn(config.dataDir);
  const { databaseUrl, databaseConnections: connections = defaultConnections } = config;
  const db = databaseUrl ? await postgres(databaseUrl, { timeoutMs, connections, quiet }) : sqlite(file);
  try {
    await db.raw(config.databaseUrl ? 'select 1' : 'select count(*) from sqlite_master');
    return db;
  } catch (error) {
    await db.destroy();
    throw new DatabaseError(
      config.databaseUrl
        ? `the database of ${config.givenBy ?? 'POSTERN_DATABASE_URL'} cannot be used: ${reasonOf(error)}; ${adviceOn(error)}`
        : `${file} cannot be used: ${reasonOf(error)}; check its permissions, and the disk and its room, or restore it from a backup`,
    );
  }
}

function adviceOn(error: unknown): string {
  return (error as { code?: string }).code === tooManyConnections
    ? "raise max_connections or the user's CONNECTION LIMIT, or lower POSTERN_DATABASE_CONNECTIONS on each node"
    : "check that it runs, and the URL's user, password and name";
}

/** The reason alone: knex puts the statement before it, and Node groups the errors of several addresses. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map((inner) => reasonOf(inner)).join(', ');
  const message = error instanceof Error ? error.message : String(error);
  return message.split(' - ').at(-1) ?? message;
}
