/** Small files that must not be lost or half there: secrets, and notes on which a start depends. */
import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** All or nothing, for this user's eyes, and on disk when it returns. One process at a time: db/lock.ts. */
export function writeWhole(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
  syncNames(dirname(file));
}

/** The same where there is no such file; of several processes that come at once one writes it, and the others leave it. */
export function writeFirst(file: string, text: string): void {
  const own = `${file}.${randomUUID()}`;
  try {
    writeFileSync(own, text, { mode: 0o600, flush: true });
    linkSync(own, file);
    syncNames(dirname(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(own, { force: true });
  }
}

function syncNames(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
