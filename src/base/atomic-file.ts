/** Small files that must not be lost or half there: secrets, and notes on which a start depends. */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';

/** All or nothing, for this user's eyes, and on disk when it returns. One process at a time: db/engine/data-dir-lock.ts. */
export function writeAtomic(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
  syncNames(dirname(file));
}

/** The same where there is no such file; of several processes that come at once one writes it, and the others leave it. */
export function createAtomic(file: string, text: string): void {
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

/**
 * A directory for this user alone, with those above it. Node's own `recursive` never returns where a file system makes none
 * and says that something is missing, as /proc does.
 */
export function makeDirectory(path: string): void {
  try {
    makeWithParents(resolve(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice = 'check its owner and permissions, or set POSTERN_DATA_DIR to a directory on a disk';
    throw Object.assign(new Error(`the directory ${path} cannot be made: ${message}; ${advice}`), { code });
  }
}

function makeWithParents(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path) makeWithParents(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process has made it meanwhile.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
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
