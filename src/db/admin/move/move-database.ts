/**
 * A move from SQLite to PostgreSQL, from the first look to the last note. Nothing of SQLite's file is changed but its
 * schema, where that is an old one. It can be ended anywhere and begun again:
 *
 *   look at the target · note beside SQLite (nobody uses it any more) · claim the target (nobody uses it yet) · copy ·
 *   sequences · check · note that SQLite's is the past · note that the target is good
 *
 * The last two in this order: what is in doubt between them is neither's to be started with, and the next run settles it.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { failpoint } from '../../../base/failpoints.ts';
import { DatabaseError, type Db, type Trx } from '../../engine/open.ts';
import { isAway } from '../../engine/unavailable.ts';
import { migrate, migrationsOf, type Upgrade } from '../../schema/migrate.ts';
import { type MovedMarker, noteFile, readNote, writeNote } from '../moved-marker.ts';
import { type Sum, sumOfSource, sumOfTarget } from './compare-tables.ts';
import { planMove, type Table } from './move-plan.ts';
import * as rows from './postgres-target.ts';
import { countRows, givenNumbers, readBatch } from './sqlite-source.ts';

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
  /** How long PostgreSQL may be away. */
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
  /** Rows that were there from a run before this one. */
  resumed: number;
}

const defaultTimeoutMs = 60_000;
const retryDelayMs = 500;

export async function moveDatabase(moving: Moving): Promise<MoveResult> {
  const { source, target, to, dataDir, now } = moving;
  const note = await standing(moving);
  await migrate(source, moving.onUpgrade);
  // SQLite has one writer: nobody else is one until this is over.
  return source.transaction(async (trx) => {
    await migrate(target);
    const tables = await planMove(trx, target);
    writeNote(dataDir, { ...note, to });
    failpoint('moving');
    await rows.claimTarget(target, {
      id: note.id,
      source: `${resolve(dataDir)} on ${hostname()}`,
      now: now(),
    });
    const resumed = await copyAll(moving, trx, tables);
    await patiently(moving, async () => {
      await rows.setSequences(target, tables, await givenNumbers(trx));
      await rows.analyze(target, tables);
    });
    const checked = await checkAll(moving, trx, tables);
    failpoint('checked');
    const finishedAt = note.finishedAt ?? now();
    writeNote(dataDir, { ...note, to, finishedAt });
    failpoint('noted');
    await patiently(moving, () => rows.finishTarget(target, note.id, finishedAt));
    return { tables: checked, resumed };
  });
}

/** Looks at both sides, and changes nothing: the note of a move that may begin, or go on. */
async function standing({ target, to, dataDir, now }: Moving): Promise<MovedMarker> {
  const note = readNote(dataDir);
  const record = await rows.readRecord(target);
  const isSame = record !== null && record.id === note?.id;
  if (isSame && record.finishedAt === null) {
    await rows.requireNobody(target);
    const { pending } = await migrationsOf(target);
    if (pending.length === 0) return note!;
    throw new DatabaseError(
      'the move was begun by an older Postern; finish it with that one, or move into an empty database',
    );
  }
  if (note && note.finishedAt !== null) {
    throw new DatabaseError(
      `the database of ${dataDir} has moved to ${note.to} already: set POSTERN_DATABASE_URL to that, and start the server`,
    );
  }
  if (record) {
    const state = record.finishedAt === null ? 'an unfinished move' : 'what was moved';
    const other = note
      ? ''
      : ` (if that was this one: ${noteFile(dataDir)} is gone, and the move was given up with it)`;
    throw new DatabaseError(
      `the target holds ${state} from ${record.source}${other}. Give an empty database: a move adds to nothing`,
    );
  }
  await rows.requireUnused(target);
  // Into another target than before it is another move: what is in that one is given up.
  return note?.to === to ? note : { id: randomUUID(), to, begunAt: now(), finishedAt: null };
}

/** Answers how many rows were there already. */
async function copyAll(moving: Moving, source: Trx, tables: Table[]): Promise<number> {
  const { target } = moving;
  const counts = new Map<Table, number>();
  for (const table of tables) counts.set(table, await countRows(source, table));
  const all = sum(counts.values());
  let [resumed, before] = [0, 0];
  for (const table of tables) {
    const progress = (done: number) =>
      moving.onProgress({ doing: 'copied', table: table.name, done: before + done, all });
    let at = await patiently(moving, () => rows.readReached(target, table));
    resumed += at.rows;
    for (let batch = await readBatch(source, table, at.after); batch.last !== null; ) {
      // The next one is read while this one is written.
      const following = readBatch(source, table, batch.last);
      following.catch(() => {});
      const { after } = at;
      const written = batch;
      at = await patiently(moving, () =>
        rows.insertBatch(target, table, after, written, () => failpoint('copying')),
      );
      failpoint('copied');
      progress(at.rows);
      const next = await following;
      batch = at.after === written.last ? next : await readBatch(source, table, at.after);
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
      patiently(moving, () => sumOfTarget(target, table)),
    ]);
    if (here.rows !== there.rows || here.digest !== there.digest) {
      const [ours, theirs] = [here, there].map(({ rows, digest }) => `${rows} rows (${digest.slice(0, 16)})`);
      throw new DatabaseError(
        `${table.name} is not the same on both sides: ${ours} in SQLite, ${theirs} in PostgreSQL. Somebody has changed ` +
          'one of them: give an empty database',
      );
    }
    checked.push({ table: table.name, ...here });
  }
  return checked;
}

const sum = (numbers: Iterable<number>) => [...numbers].reduce((one, other) => one + other, 0);

/**
 * A PostgreSQL that restarts, or a connection that is lost, is waited for: so long from when it was first seen to be
 * away, however long the statement had been at work by then. What is done again must know what it did.
 */
async function patiently<T>(
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
