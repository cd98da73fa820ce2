/**
 * Markers of a move from SQLite to PostgreSQL (`postern move`). They ensure that at most one of the two databases is used, and
 * none during the move. They are checked whenever a database is opened for use:
 *
 * - a file next to SQLite's, written before the first row is copied: SQLite must not be changed from then on. The operator
 *   removes it to go back to SQLite.
 * - the table `postern_move` in the target, with the progress; it stays afterwards as a record of the source.
 *
 * Both have the move's id, so a move that was given up by removing the file is not confused with the next one.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomic } from '../../base/atomic-file.ts';
import { DatabaseError, type Db, isPostgres } from '../engine/open.ts';

/** The content of the file. */
export interface MovedMarker {
  id: string;
  /** The target, without its credentials. */
  to: string;
  begunAt: number;
  finishedAt: number | null;
}

export const moveTable = 'postern_move';

export function markerFile(dataDir: string): string {
  return join(dataDir, 'postern.sqlite.moved');
}

/** Null if no move has begun. */
export function readMarker(dataDir: string): MovedMarker | null {
  const file = markerFile(dataDir);
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
    throw new DatabaseError(`${file} is not a file that \`postern move\` has written; restore its content`);
  }
}

export function writeMarker(dataDir: string, marker: MovedMarker): void {
  writeAtomic(markerFile(dataDir), `${JSON.stringify(marker, null, 2)}\n`);
}

/** Rejects if the database must not be used. Call it before changing anything. */
export async function refuseMoved(db: Db, dataDir: string): Promise<void> {
  if (isPostgres(db)) await refuseUnfinished(db);
  else refuseLeft(dataDir);
}

/** Throws if SQLite's database is being moved or has been moved. */
export function refuseLeft(dataDir: string): void {
  const marker = readMarker(dataDir);
  if (marker === null) return;
  const file = markerFile(dataDir);
  throw new DatabaseError(
    marker.finishedAt === null
      ? `the database of ${dataDir} is being moved to ${marker.to}: run \`postern move --to URL\` again, which continues the move; ` +
          `to give the move up, remove ${file} and drop the database there`
      : `the database of ${dataDir} has moved to ${marker.to}: set POSTERN_DATABASE_URL to that; to go back to SQLite as it was ` +
          `on ${new Date(marker.finishedAt).toISOString()}, remove ${file} (it does not know what has been sent since, and mail that waited then is sent again)`,
  );
}

async function refuseUnfinished(db: Db): Promise<void> {
  const { rows } = await db.raw('select to_regclass(?) is not null as "isThere"', [moveTable]);
  if (!rows[0].isThere) return;
  const unfinished = await db(moveTable).whereNull('finished_at').first('source');
  if (!unfinished) return;
  throw new DatabaseError(
    `a move into this database from ${unfinished.source} is not finished: run \`postern move --to URL\` there again, ` +
      'which continues the move; or drop this database and create it again',
  );
}
