/** What the database is, for those who look after it. */

import { type Db, isPostgres } from '../engine/open.ts';
import { migrationsOf } from '../schema/migrate.ts';

export interface DatabaseInfo {
  /** With its version. */
  engine: string;
  bytes: number;
  /** PostgreSQL's settings that are off and without which a crash of the machine can lose or damage what was committed. */
  unsafe: string[];
  /** Migrations of this program that it has not had, and those it had that this program does not know. */
  pending: string[];
  unknown: string[];
}

export async function databaseInfo(db: Db): Promise<DatabaseInfo> {
  return { ...(isPostgres(db) ? await ofPostgres(db) : await ofSqlite(db)), ...(await migrationsOf(db)) };
}

async function ofPostgres(db: Db) {
  const { rows } = await db.raw(
    `select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
       array(select name from pg_settings where name in ('fsync', 'full_page_writes') and setting = 'off' order by name)
         as unsafe`,
  );
  const { version, bytes, unsafe } = rows[0];
  return { engine: `PostgreSQL ${version}`, bytes: Number(bytes), unsafe };
}

async function ofSqlite(db: Db) {
  const [row] = await db.raw(
    `select sqlite_version() as version, page_count * page_size as bytes
     from pragma_page_count(), pragma_page_size()`,
  );
  return { engine: `SQLite ${row.version}`, bytes: Number(row.bytes), unsafe: [] };
}
