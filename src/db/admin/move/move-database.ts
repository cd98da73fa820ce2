/**
 * Moves the database from SQLite to PostgreSQL. SQLite's file stays as it is, except that an old schema is upgraded. A move can
 * be interrupted at any step and continued:
 *
 *   check the target · mark SQLite as moving (no server uses it) · claim the target (no server uses it yet) · copy ·
 *   sequences · compare · mark SQLite as moved · mark the target as finished
 *
 * The order of the last two matters: between them, neither database can be used, and the next run finishes the move.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { failpoint } from '../../../base/failpoints.ts';
import { DatabaseError, type Db, type Trx } from '../../engine/open.ts';
import { isAway } from '../../engine/unavailable.ts';
import { migrate, migrationsOf, type Upgrade } from '../../schema/migrate.ts';
import { type MovedMarker, markerFile, readMarker, writeMarker } from '../moved-marker.ts';
import { type Sum, sumOfSource, sumOfTarget } from './compare-tables.ts';
import { planMove, type Table } from './move-plan.ts';
import * as rows from './postgres-target.ts';
import { countRows, givenNumbers, isSameKey, readBatch } from './sqlite-source.ts';

interface Moving {
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
  doing: 'copied' | 'checked';
  table: string;
  done: number;
  all: number;
}

export interface MoveResult {
  tables: ({ table: string; replaced: number } & Sum)[];
  /** Rows that an earlier run had copied. */
  resumed: number;
}

const defaultTimeoutMs = 60_000;
const retryDelayMs = 500;

export async function moveDatabase(moving: Moving): Promise<MoveResult> {
  const { source, target, to, dataDir, now } = moving;
  const marker = await markerOf(moving);
  await migrate(source, moving.onUpgrade);
  // SQLite has one writer, so nothing else writes during the move.
  return source.transaction(async (trx) => {
    await migrate(target);
    const tables = await planMove(trx, target);
    writeMarker(dataDir, { ...marker, to });
    failpoint('moving');
    await rows.claimTarget(target, {
      id: marker.id,
      source: `${resolve(dataDir)} on ${hostname()}`,
      now: now(),
    });
    const resumed = await copyAll(moving, trx, tables);
    await retryWhileAway(moving, async () => {
      await rows.setSequences(target, tables, await givenNumbers(trx));
      await rows.analyze(target, tables);
    });
    const checked = await checkAll(moving, trx, tables);
    failpoint('checked');
    const finishedAt = marker.finishedAt ?? now();
    writeMarker(dataDir, { ...marker, to, finishedAt });
    failpoint('noted');
    await retryWhileAway(moving, () => rows.finishTarget(target, marker.id, finishedAt));
    return { tables: checked, resumed };
  });
}

/** Checks both sides and changes nothing. Returns the marker of a move that may begin or continue. */
async function markerOf({ target, to, dataDir, now }: Moving): Promise<MovedMarker> {
  const marker = readMarker(dataDir);
  const record = await rows.readRecord(target);
  const isSame = record !== null && record.id === marker?.id;
  if (isSame && record.finishedAt === null) {
    await rows.requireNoServer(target);
    const { pending } = await migrationsOf(target);
    if (pending.length === 0) return marker!;
    throw new DatabaseError(
      'the move was begun by an older Postern; finish it with that one, or move into an empty database',
    );
  }
  if (marker && marker.finishedAt !== null) {
    throw new DatabaseError(
      `the database of ${dataDir} has moved to ${marker.to} already: set POSTERN_DATABASE_URL to that, and start the server`,
    );
  }
  if (record) {
    const state = record.finishedAt === null ? 'an unfinished move' : 'what was moved';
    const other = marker
      ? ''
      : ` (if it was this move: ${markerFile(dataDir)} has been removed, which gave the move up)`;
    throw new DatabaseError(
      `the target holds ${state} from ${record.source}${other}. Use an empty database: a move does not add to existing data`,
    );
  }
  await rows.requireUnused(target);
  // A different target makes it a new move; the old target is given up.
  return marker?.to === to ? marker : { id: randomUUID(), to, begunAt: now(), finishedAt: null };
}

/** Returns how many rows an earlier run had copied. */
async function copyAll(moving: Moving, source: Trx, tables: Table[]): Promise<number> {
  const { target } = moving;
  const counts = new Map<Table, number>();
  for (const table of tables) counts.set(table, await countRows(source, table));
  const all = sum(counts.values());
  let [resumed, before] = [0, 0];
  for (const table of tables) {
    const progress = (done: number) =>
      moving.onProgress({ doing: 'copied', table: table.name, done: before + done, all });
    let at = await retryWhileAway(moving, () => rows.readReached(target, table));
    resumed += at.rows;
    for (let batch = await readBatch(source, table, at.after); batch.last !== null; ) {
      // The next batch is read while this one is written.
      const following = readBatch(source, table, batch.last);
      following.catch(() => {});
      const { after } = at;
      const written = batch;
      at = await retryWhileAway(moving, () =>
        rows.insertBatch(target, table, after, written, () => failpoint('copying')),
      );
      failpoint('copied');
      progress(at.rows);
      const next = await following;
      batch = isSameKey(at.after, written.last!) ? next : await readBatch(source, table, at.after);
    }
    before += counts.get(table)!;
  }
  return resumed;
}

async function checkAll(moving: Moving, source: Trx, tables: Table[]): Promise<MoveResult['tables']> {
  const { target } = moving;
  const all = sum(await Promise.all(tables.map((table) => countRows(source, table))));
  const checked: MoveResult['tables'] = [];
  let done = 0;
  for (const table of tables) {
    const [here, there] = await Promise.all([
      sumOfSource(source, table, (count) => {
        done += count;
        moving.onProgress({ doing: 'checked', table: table.name, done, all });
      }),
      retryWhileAway(moving, () => sumOfTarget(target, table)),
    ]);
    if (here.rows !== there.rows || here.digest !== there.digest) {
      const [ours, theirs] = [here, there].map(({ rows, digest }) => `${rows} rows (${digest.slice(0, 16)})`);
      throw new DatabaseError(
        `${table.name} is not the same on both sides: ${ours} in SQLite, ${theirs} in PostgreSQL. One of them ` +
          'has been changed meanwhile: use an empty database',
      );
    }
    checked.push({ table: table.name, ...here });
  }
  return checked;
}

const sum = (numbers: Iterable<number>) => [...numbers].reduce((one, other) => one + other, 0);

/**
 * Retries while PostgreSQL restarts or the connection is lost, for `timeoutMs` from the first failure, however long the
 * statement had run by then. `run` must recognize what an earlier try has already done.
 */
async function retryWhileAway<T>(
  { onError, timeoutMs = defaultTimeoutMs }: Moving,
  run: () => Promise<T>,
): Promise<T> {
  let awaySince: number | null = null;
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!isAway(error)) throw error;
      if (awaySince === null) onError(`PostgreSQL is away (${(error as Error).message}); waiting for it`);
      const now = performance.now();
      awaySince ??= now;
      if (now - awaySince > timeoutMs) throw error;
      await rest(retryDelayMs);
    }
  }
}
