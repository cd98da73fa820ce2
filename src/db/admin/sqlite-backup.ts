/**
 * A copy of the SQLite database while others write to it, as it was at one instant: all that was committed before the
 * copy began is in it, nothing of what came later.
 *
 * It is one read transaction. Writers do not wait for it; but until it ends the WAL is not begun anew, and grows by what
 * is written meanwhile. So it goes through the file as fast as the disk lets it, and then brings the WAL into the database
 * itself, or the next to commit would have to. The transaction is ours and not the backup's own, or each commit of a
 * server would have the copy begin again. (`VACUUM INTO` takes longer, and can neither tell how far it is nor be stopped.)
 */
import { open } from 'node:fs/promises';
import sqlite3 from 'sqlite3';
import { DatabaseError, type Db } from '../engine/open.ts';

/** Of sqlite3, which has it and does not declare it. */
interface Backup {
  readonly remaining: number;
  readonly pageCount: number;
  step(pages: number, done: (error: Error | null, isComplete: boolean) => void): void;
  finish(done: () => void): void;
}

type Source = sqlite3.Database & { backup(file: string, done: (error: Error | null) => void): Backup };

export interface Copying {
  /** Told how much is done, from 0 to 1. */
  onProgress?(share: number): void;
  signal?: AbortSignal;
}

/** Some megabytes, between which the copy can be stopped. */
const pagesAtOnce = 1024;

/** `to` is not there yet. On disk when it returns; what is left of one that failed is the caller's to remove. */
export async function copyDatabase(from: string, to: string, copying: Copying = {}): Promise<void> {
  const source = await openSource(from);
  try {
    await called((done) => source.exec('begin; select count(*) from sqlite_master', done));
    await copyPages(source, to, copying);
    await called((done) => source.exec('commit; pragma wal_checkpoint(passive)', done));
  } finally {
    await called((done) => source.close(done));
  }
  const file = await open(to, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

async function copyPages(source: Source, to: string, { onProgress, signal }: Copying): Promise<void> {
  let backup: Backup | undefined;
  await called((done) => {
    backup = source.backup(to, done);
  });
  try {
    for (let isComplete = false; !isComplete; ) {
      signal?.throwIfAborted();
      isComplete = await step(backup!);
      onProgress?.(1 - backup!.remaining / Math.max(backup!.pageCount, 1));
    }
  } finally {
    await new Promise<void>((done) => backup!.finish(done));
  }
}

function step(backup: Backup): Promise<boolean> {
  return new Promise((resolve, reject) => {
    backup.step(pagesAtOnce, (error, isComplete) => (error ? reject(error) : resolve(isComplete)));
  });
}

function openSource(file: string): Promise<Source> {
  return new Promise((resolve, reject) => {
    const source = new sqlite3.Database(file, sqlite3.OPEN_READWRITE, (error) => {
      if (!error) return resolve(source as Source);
      reject(new DatabaseError(`${file} cannot be opened: ${error.message}; is POSTERN_DATA_DIR right?`));
    });
  });
}

function called(call: (done: (error: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    call((error) => (error ? reject(error) : resolve()));
  });
}

/** What is wrong with an SQLite database; null: every page, row and index is as it should be. */
export async function faultOf(db: Db): Promise<string | null> {
  const [row] = await db.raw('pragma integrity_check(1)');
  return row.integrity_check === 'ok' ? null : row.integrity_check;
}
