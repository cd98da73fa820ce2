/** Small files that must never be lost or half written: secrets, and state that the next start depends on. */
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

/**
 * Replaces the file: all or nothing, readable by this user only, on disk when it returns. Only one process may write at a
 * time (platform/database/engine/data-dir-lock.ts).
 */
export function writeAtomic(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
  syncDirectory(dirname(file));
}

/** Creates the file unless it exists. If several processes try at once, one of them writes it and the others leave it. */
export function createAtomic(file: string, text: string): void {
  const temporary = `${file}.${randomUUID()}`;
  try {
    writeFileSync(temporary, text, { mode: 0o600, flush: true });
    linkSync(temporary, file);
    syncDirectory(dirname(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/**
 * Creates a directory for this user only, and its parents. Node's own `recursive` option never returns on a file system that
 * refuses with ENOENT, as /proc does.
 */
export function makeDirectory(path: string): void {
  try {
    makeWithParents(resolve(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice = 'check its owner and permissions, or set POSTERN_DATA_DIR to a directory on a disk';
    throw Object.assign(new Error(`the directory ${path} cannot be created: ${message}; ${advice}`), {
      code,
    });
  }
}

function makeWithParents(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path) makeWithParents(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
