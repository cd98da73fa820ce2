/**
 * Allows one server per data directory. A second server would treat the leases of the first as its own, left by a crash, and
 * send everything in flight again. The lock is an open transaction on an SQLite file, which ends with the process however it
 * ends, so a lock can never be stale.
 */
import { join } from 'node:path';
import sqlite3 from 'sqlite3';
import { DatabaseError } from './open.ts';

/** The error of each command that needs the lock, if another process has it. */
const messages = {
  serve: (dataDir: string) =>
    `another Postern is running on ${dataDir}; stop it first, or give this one a POSTERN_DATA_DIR of its own`,
  move: (dataDir: string) =>
    `a Postern is running on ${dataDir}; stop it first: nothing may change while its database is moved`,
  upgrade: (dataDir: string) =>
    `a Postern is running on ${dataDir}; stop it first: it may be of another version, and starting this one upgrades the database too`,
  'change secrets': () => 'another command is changing the secrets; wait until it is done',
};

/** Returns a function that releases the lock. The secrets have their own lock, because they can be changed while a server runs. */
export function lockDataDir(
  dataDir: string,
  purpose: keyof typeof messages = 'serve',
): Promise<() => Promise<void>> {
  const file = join(dataDir, purpose === 'change secrets' ? 'secret.lock' : 'lock');
  return new Promise((resolve, reject) => {
    const lock = new sqlite3.Database(file);
    lock.exec('begin exclusive', (error) => {
      if (!error) return resolve(() => new Promise((closed) => lock.close(() => closed())));
      lock.close();
      const taken = (error as NodeJS.ErrnoException).code === 'SQLITE_BUSY';
      const advice = 'check its owner and permissions, and that its disk has free space';
      const broken = `${dataDir} cannot be written: ${error.message}; ${advice}`;
      reject(new DatabaseError(taken ? messages[purpose](dataDir) : broken));
    });
  });
}
