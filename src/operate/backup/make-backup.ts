/**
 * Makes a backup of the SQLite database and its secret, while the server runs. It gets its name only when it is complete:
 * copied, on disk, checked, its keys decrypted; until then it is in a directory beside it, which is removed at the end. The
 * schema is not upgraded, so that a new version of the program can back up the database before it changes it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { chmod, mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { countSealed } from '#accounts/rows/sealed-columns.ts';
import { createSeal } from '#accounts/seal.ts';
import { type Secrets, secretFile } from '#platform/base/secrets.ts';
import { reasonOf } from '#platform/base/system-error.ts';
import { noteBackup } from '#platform/database/admin/last-backup.ts';
import { type Copying, copyDatabase, problemOf } from '#platform/database/admin/sqlite-backup.ts';
import { openDatabase } from '#platform/database/engine/open.ts';

/** Its message is for the operator: the reason why the backup failed, and what to do. */
export class BackupError extends Error {}

export interface Backing extends Copying {
  dataDir: string;
  secrets(): Secrets;
  now(): number;
  /** The copy is complete, and will be checked. */
  onChecking?(): void;
}

/** Unfinished copies are in directories with this in their names. */
export const partial = '.partial-';

/** Replaces `file`. `secret`: the file for a copy of the secret, or null. Returns the size of the backup. */
export async function makeBackup(
  backing: Backing,
  { file, secret }: { file: string; secret: string | null },
): Promise<number> {
  return withCopy(backing, file, async (copy, temporary) => {
    const { size } = await stat(copy);
    if (secret) await copySecret(secretFile(backing.dataDir), secret, temporary);
    await rename(copy, file);
    await sync(dirname(file));
    noteBackup(backing.dataDir, { at: backing.now(), file });
    return size;
  });
}

/** Passes a complete copy, which is removed afterwards. `place`: a path beside which there is room for it. */
export async function withCopy<Result>(
  backing: Backing,
  place: string,
  use: (copy: string, temporary: string) => Promise<Result>,
): Promise<Result> {
  const temporary = await temporaryDirectory(place);
  try {
    const copy = join(temporary, 'postern.sqlite');
    await copyDatabase(join(backing.dataDir, 'postern.sqlite'), copy, backing);
    backing.onChecking?.();
    await examine(backing, temporary);
    await chmod(copy, 0o600);
    return await use(copy, temporary);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** On the same file system, and readable by its owner only. */
async function temporaryDirectory(place: string): Promise<string> {
  try {
    return await mkdtemp(place + partial);
  } catch (error) {
    throw new BackupError(`${dirname(place)} cannot be written to: ${reasonOf(error)}; choose another place`);
  }
}

/** A backup is useless if the database is damaged or its keys cannot be decrypted. */
async function examine({ secrets }: Backing, temporary: string): Promise<void> {
  const db = await openDatabase({ dataDir: temporary, databaseUrl: null });
  try {
    const problem = await problemOf(db);
    if (problem)
      throw new BackupError(`the database is damaged: ${problem}; restore it from an earlier backup`);
    const { all, closed } = await countSealed(db, createSeal(secrets()).opens);
    if (closed > 0)
      throw new BackupError(
        `the secret cannot decrypt ${closed} of ${all} keys in the database; check POSTERN_SECRET`,
      );
  } finally {
    await db.destroy();
  }
}

async function copySecret(from: string, to: string, temporary: string): Promise<void> {
  const copy = join(temporary, 'secret');
  writeFileSync(copy, readFileSync(from), { mode: 0o600, flush: true });
  await rename(copy, to);
}

/** Writes a file to disk, or the names in a directory. */
export async function sync(path: string): Promise<void> {
  await using handle = await open(path);
  await handle.sync();
}
