/**
 * The marker of a move from SQLite to PostgreSQL (`postern move`): a file next to SQLite's. It is written just before PostgreSQL
 * commits, and again afterwards. From then on SQLite must not be used, until the operator removes the file to go back to it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomic } from '#platform/base/atomic-file.ts';
import { DatabaseError } from '#platform/database/engine/open.ts';

/** The content of the file. */
export interface MovedMarker {
  id: string;
  /** The target, without its credentials. */
  to: string;
  begunAt: number;
  /** Null: PostgreSQL may have committed, or not. */
  finishedAt: number | null;
}

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

/** Throws if SQLite's database is to be used, and has been moved, or may have been. */
export function refuseMoved({ dataDir, databaseUrl }: { dataDir: string; databaseUrl: string | null }): void {
  const marker = readMarker(dataDir);
  if (marker === null || databaseUrl !== null) return;
  const file = markerFile(dataDir);
  throw new DatabaseError(
    marker.finishedAt === null
      ? `the move of ${dataDir} to ${marker.to} was interrupted: run \`postern move --to URL\` again, which finishes it; ` +
          `to give the move up, drop the database there and remove ${file}`
      : `the database of ${dataDir} has moved to ${marker.to}: set POSTERN_DATABASE_URL to that; to go back to SQLite as it was ` +
          `on ${new Date(marker.finishedAt).toISOString()}, remove ${file} (it does not know what has been sent since, and mail that waited then is sent again)`,
  );
}
