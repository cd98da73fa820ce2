/**
 * Tells at once whether a server is running that sends mail from this database, however the last one ended. On SQLite, the
 * server holds the lock on its data directory (platform/database/engine/data-dir-lock.ts). On PostgreSQL, each node has a
 * connection for notifications (mail/queue/rows/notify.ts) that runs a statement every four seconds; by the database's clock the
 * last one must be less than ten seconds old, because the connection of a machine that has lost power may look open for hours.
 */
import { join } from 'node:path';
import sqlite3 from 'sqlite3';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';

/** The application_name of the connections for notifications: of all nodes, and of nodes that send mail. */
export const anyConnection = 'postern bell';
export const senderConnection = 'postern bell, mta';

export async function isServed(db: Db, dataDir: string): Promise<boolean> {
  return isPostgres(db) ? isServedOnPostgres(db) : isLocked(join(dataDir, 'lock'));
}

export async function isServedOnPostgres(db: Db): Promise<boolean> {
  const { rows } = await db.raw(
    `select 1 from pg_stat_activity where datname = current_database() and application_name = ?
       and state_change > clock_timestamp() - interval '10 seconds' limit 1`,
    [senderConnection],
  );
  return rows.length > 0;
}

/** Takes a reader's lock for a moment and never waits, so that it does not keep a server from starting. */
function isLocked(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const lock = new sqlite3.Database(file, sqlite3.OPEN_READONLY, (failed) => {
      // Without the file, no server has ever run.
      if (failed) return resolve(false);
      lock.configure('busyTimeout', 0);
      lock.get('select count(*) from sqlite_master', (error) => {
        const isBusy = (error as NodeJS.ErrnoException | null)?.code === 'SQLITE_BUSY';
        lock.close(() => resolve(isBusy));
      });
    });
  });
}
