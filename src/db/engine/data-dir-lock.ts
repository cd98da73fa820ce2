/**
 * Allows one server per data directory. A second one would take the leases of the first for its own, left by a crash, and
 * send everything in flight again. The lock is an open transaction on an SQLite file, which ends with the process however it
 * dies, so a lock can never be stale.
 */
import { join } from 'node:path';
import sqlite3 from 'sqlite3';
import { DatabaseError } from './open.ts';

/** Returns a function that releases the lock. */
export function lockDataDir(dataDir: string): Promise<() => Promise<void>> {
  const advice = 'stop it first, or give this one a POSTERN_DATA_DIR of its own';
  return locked(dataDir, 'lock', `another Postern is running on ${dataDir}; ${advice}`);
}

/** For moving the database: a running server would change what is being copied. */
export function lockForMove(dataDir: string): Promise<() => Promise<void>> {
  const advice = 'stop it first: nothing may change while its database moves';
  return locked(dataDir, 'lock', `a Postern is running on ${dataDir}; ${advice}`);
}

/** For upgrading the database by the command line. */
export function lockForUpgrade(dataDir: string): Promise<() => Promise<void>> {
  const advice =
    'stop it first: it may be of another version, and starting this one upgrades the database too';
  return locked(dataDir, 'lock', `a Postern is running on ${dataDir}; ${advice}`);
}

/** For changing the file of secrets, whether a server runs or not. */
export function lockSecrets(dataDir: string): Promise<() => Promise<void>> {
  return locked(dataDir, 'secret.lock', 'another command is changing the secrets; wait until it is done');
}

function locked(dataDir: string, name: string, whenTaken: string): Promise<() => Promise<void>> {
  return new Promise((resolve, reject) => {
    const lock = new sqlite3.Database(join(dataDir, name));
    lock.exec('begin exclusive', (error) => {
      if (!error) return resolve(() => new Promise((closed) => lock.close(() => closed())));
      lock.close();
      const taken = (error as NodeJS.ErrnoException).code === 'SQLITE_BUSY';
      const advice = 'check its owner and permissions, and that its disk has room';
      const broken = `${dataDir} cannot be written: ${error.message}; ${advice}`;
      reject(new DatabaseError(taken ? whenTaken : broken));
    });
  });
}
