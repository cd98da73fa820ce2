/**
 * Moves the database from SQLite to PostgreSQL in one transaction: PostgreSQL has everything or, if the move fails, nothing,
 * and SQLite is used on as before. If PostgreSQL restarts meanwhile, the transaction is repeated. SQLite's file stays as it is,
 * except that an old schema is upgraded.
 *
 * The marker (moved-marker.ts) is written just before the commit, so that neither database can be used if its answer is lost.
 * The next run then finds the record that the transaction left in the target, or repeats the move.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { failpoint } from '#platform/base/failpoints.ts';
import {
  type MovedMarker,
  readMarker,
  refuseMoved,
  writeMarker,
} from '#platform/database/admin/moved-marker.ts';
import { DatabaseError, type Db, type Trx } from '#platform/database/engine/open.ts';
import { isAway } from '#platform/database/engine/unavailable.ts';
import { migrate, type Upgrade } from '#platform/database/schema/migrate.ts';
import { anyConnection, senderConnection } from '#platform/database/tables/server-running.ts';
import { copyTable, countRows, type Table, tablesOf } from './copy-table.ts';

export interface Moving {
  source: Db;
  target: Db;
  /** The target, without its credentials. */
  to: string;
  dataDir: string;
  now(): number;
  onUpgrade(upgrade: Upgrade): void;
  onProgress(progress: MoveProgress): void;
  onError(what: string): void;
  /** How long to wait for a PostgreSQL that is away. */
  timeoutMs?: number;
}

export interface MoveProgress {
  table: string;
  done: number;
  all: number;
}

export interface MoveResult {
  tables: { table: string; rows: number }[];
  /** Number of rows with NUL, which PostgreSQL cannot store in text; they have U+FFFD instead. */
  replaced: number;
}

const maxTries = 5;
const defaultTimeoutMs = 60_000;
const retryDelayMs = 500;

export async function moveDatabase(moving: Moving): Promise<MoveResult> {
  const { source, target, to, dataDir, now } = moving;
  const before = readMarker(dataDir);
  if (before && before.finishedAt !== null) refuseMoved({ dataDir, databaseUrl: null });
  // A different target makes it a new move; the old target is given up.
  const marker = before?.to === to ? before : { id: randomUUID(), to, begunAt: now(), finishedAt: null };
  await migrate(source, moving.onUpgrade);
  // SQLite has one writer, so nothing else writes during the move.
  return source.transaction(async (rows) => {
    const result = await repeatWhileAway(moving, async () => {
      await requireUsable(target);
      await migrate(target);
      return target.transaction((trx) => moveAll(moving, marker, rows, trx));
    });
    failpoint('moved');
    writeMarker(dataDir, { ...marker, finishedAt: now() });
    return result;
  });
}

async function moveAll(moving: Moving, marker: MovedMarker, source: Trx, target: Trx): Promise<MoveResult> {
  const { dataDir, onProgress } = moving;
  const tables = await tablesOf(target);
  if (await isMoved(target, marker.id)) return { tables: await countAll(target, tables), replaced: 0 };
  await claim(target, tables);
  const counts = await countAll(source, tables);
  const all = counts.reduce((sum, { rows }) => sum + rows, 0);
  let [done, replaced] = [0, 0];
  for (const table of tables) {
    replaced += await copyTable(source, target, table, (rows) => {
      done += rows;
      onProgress({ table: table.name, done, all });
      failpoint('copying');
    });
    await target.raw(`analyze ${table.name}`);
  }
  for (const [at, { table, rows }] of (await countAll(target, tables)).entries()) {
    if (rows !== counts[at]!.rows)
      throw new DatabaseError(`${table} has ${counts[at]!.rows} rows in SQLite and ${rows} in PostgreSQL`);
  }
  await continuePositions(source, target);
  await target(recordTable).insert({ id: marker.id, source: `${resolve(dataDir)} on ${hostname()}` });
  writeMarker(dataDir, marker);
  failpoint('moving');
  return { tables: counts, replaced };
}

async function countAll(db: Trx, tables: Table[]): Promise<MoveResult['tables']> {
  const counts = [];
  for (const { name } of tables) counts.push({ table: name, rows: await countRows(db, name) });
  return counts;
}

/** Has a row in a database that a move has filled: the move's id. */
const recordTable = 'moved_from';

async function isMoved(target: Trx, id: string): Promise<boolean> {
  if (!(await target.schema.hasTable(recordTable))) return false;
  return (await target(recordTable).where({ id }).first('id')) !== undefined;
}

/** Rejects if a server runs on the target, whose statements would wait for the move, or if it is not in UTF-8. */
async function requireUsable(target: Db): Promise<void> {
  const { rows } = await target.raw(
    `select current_setting('server_encoding') as encoding, exists (select 1 from pg_stat_activity
       where datname = current_database() and application_name in (?, ?)) as "hasServer"`,
    [anyConnection, senderConnection],
  );
  const [{ encoding, hasServer }] = rows;
  if (hasServer)
    throw new DatabaseError('a Postern is running on the target; stop it until the move is finished');
  if (encoding !== 'UTF8') {
    const how = 'create it with `createdb --encoding=UTF8 --template=template0 NAME`';
    throw new DatabaseError(`the target is encoded in ${encoding}, mail needs UTF8; ${how}`);
  }
}

/** Tables that the schema and the first start fill in a database that has not been used yet. */
const filledAtStart = ['event_readers', 'one_time_tokens'];

/** Whatever else writes to the target waits until the move has ended. Rejects if it has data. */
async function claim(target: Trx, tables: Table[]): Promise<void> {
  await target.raw(`lock table ${tables.map(({ name }) => name).join(', ')} in exclusive mode`);
  const filled = (await countAll(target, tables)).filter(({ rows }) => rows > 0).map(({ table }) => table);
  const used = filled.filter((name) => !filledAtStart.includes(name));
  if (used.length > 0) {
    throw new DatabaseError(
      `the target is not empty: there are rows in ${used.join(', ')}. Use an empty database: a move does not add to existing data`,
    );
  }
  for (const name of filled) await target(name).delete();
  await target.schema.createTable(recordTable, (table) => {
    table.text('id').notNullable();
    table.text('source').notNullable();
  });
}

/** New events come after all of SQLite, including those that were deleted, because readers of events remember positions. */
async function continuePositions(source: Trx, target: Trx): Promise<void> {
  const [last] = await source.raw("select seq from sqlite_sequence where name = 'events'");
  // One more, because no event may have the sequence's last value (platform/database/schema/migrate.ts).
  if (last) await target.raw("select setval('events_position_seq', ?)", [last.seq + 1]);
}

/** Repeats `run` if PostgreSQL restarts or the connection is lost, once it answers again. */
async function repeatWhileAway<T>(moving: Moving, run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (!isAway(error) || tries === maxTries) throw error;
      moving.onError(
        `PostgreSQL is away (${(error as Error).message}); the move starts again as soon as it answers`,
      );
      await answering(moving);
    }
  }
}

async function answering({ target, timeoutMs = defaultTimeoutMs }: Moving): Promise<void> {
  const until = performance.now() + timeoutMs;
  for (;;) {
    try {
      await target.raw('select 1');
      return;
    } catch (error) {
      if (!isAway(error) || performance.now() > until) throw error;
      await sleep(retryDelayMs);
    }
  }
}
