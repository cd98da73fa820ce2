/**
 * Copies the SQLite database while others write to it. The copy contains all commits from before it began, and none from
 * after.
 *
 * It is one read transaction. Writers do not wait for it, but the WAL cannot restart until it ends, and grows. So the copy runs
 * at full speed and then runs a checkpoint itself, which the next commit would otherwise do. The transaction is opened here,
 * because without it each commit of a server would restart the copy. (`VACUUM INTO` takes longer, shows no progress and
 * cannot be stopped.)
 */
import { open } from 'node:fs/promises';
import sqlite3 from 'sqlite3';
import { DatabaseError, type Db } from '#platform/database/engine/open.ts';

/** The backup API of the package sqlite3, which its types do not declare. */
interface Backup {
  readonly remaining: number;
  readonly pageCount: number;
  step(pages: number, done: (error: Error | null, isComplete: boolean) => void): void;
  finish(done: () => void): void;
}

type Source = sqlite3.Database & { backup(file: string, done: (error: Error | null) => void): Backup };

export interface Copying {
  /** Called with the share that is done, from 0 to 1; the copy goes on when it resolves. */
  onProgress?(share: number): void | Promise<void>;
  signal?: AbortSignal;
}

/** About 4 MiB; the copy can be stopped after each step. */
const pagesAtOnce = 1024;

/** `to` must not exist. The copy is on disk when this returns; if it fails, the caller removes the file. */
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
      await onProgress?.(1 - backup!.remaining / Math.max(backup!.pageCount, 1));
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

/** Runs SQLite's integrity check; null if every page, row and index is valid. */
export async function problemOf(db: Db): Promise<string | null> {
  const [row] = await db.raw('pragma integrity_check(1)');
  return row.integrity_check === 'ok' ? null : row.integrity_check;
}
