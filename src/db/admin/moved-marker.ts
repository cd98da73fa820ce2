/**
 * Who may use a database that is moved from SQLite to PostgreSQL (`postern move`), or has been: never both, and neither of
 * them while only a part is over. Two notes say so, and whoever opens a database for use asks first:
 *
 * - a file beside SQLite's own, from before the first row is copied: nothing is changed there any more. To remove it is
 *   the operator's way back.
 * - the table `postern_move` in the target, with how far the move is; kept when it is over, to say where all came from.
 *
 * Both have the move's id: a move that was given up by removing the file is not taken for the next one.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomic } from '../../base/atomic-file.ts';
import { DatabaseError, type Db, isPostgres } from '../engine/open.ts';

/** What is written beside SQLite's file. */
export interface MovedMarker {
  id: string;
  /** The target, without its credentials. */
  to: string;
  begunAt: number;
  finishedAt: number | null;
}

export const moveTable = 'postern_move';

export function noteFile(dataDir: string): string {
  return join(dataDir, 'postern.sqlite.moved');
}

/** Null: this database has never begun to move. */
export function readNote(dataDir: string): MovedMarker | null {
  const file = noteFile(dataDir);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new DatabaseError(`${file} is not what \`postern move\` has written; put it back as it was`);
  }
}

export function writeNote(dataDir: string, note: MovedMarker): void {
  writeAtomic(noteFile(dataDir), `${JSON.stringify(note, null, 2)}\n`);
}

/** Rejects where the database is not the one to use; before anything of it is changed. */
export async function refuseMoved(db: Db, dataDir: string): Promise<void> {
  if (isPostgres(db)) await refuseUnfinished(db);
  else refuseLeft(dataDir);
}

/** SQLite's database has gone elsewhere. */
export function refuseLeft(dataDir: string): void {
  const note = readNote(dataDir);
  if (note === null) return;
  const file = noteFile(dataDir);
  throw new DatabaseError(
    note.finishedAt === null
      ? `the database of ${dataDir} is being moved to ${note.to}: give \`postern move --to URL\` again, which goes on where it stopped; ` +
          `to give the move up, remove ${file}, and drop the database there`
      : `the database of ${dataDir} has moved to ${note.to}: set POSTERN_DATABASE_URL to that; to go back to SQLite as it was ` +
          `on ${new Date(note.finishedAt).toISOString()}, remove ${file} (what was sent since then is not known there, and what waited goes out again)`,
  );
}

async function refuseUnfinished(db: Db): Promise<void> {
  const { rows } = await db.raw('select to_regclass(?) is not null as "isThere"', [moveTable]);
  if (!rows[0].isThere) return;
  const unfinished = await db(moveTable).whereNull('finished_at').first('source');
  if (!unfinished) return;
  throw new DatabaseError(
    `a move into this database from ${unfinished.source} is not finished: give \`postern move --to URL\` there again, ` +
      'which goes on where it stopped; or drop this database and create it anew',
  );
}
