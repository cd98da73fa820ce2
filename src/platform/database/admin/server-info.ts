/** Facts about the database for the operator. */

import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { migrationsOf } from '#platform/database/schema/migrate.ts';

export interface DatabaseInfo {
  /** Name and version. */
  engine: string;
  bytes: number;
  /** PostgreSQL's settings that are off although a crash of the machine can then lose or damage committed data. */
  unsafe: string[];
  /** Steps of the schema that the database lacks, and those of it that this program does not know. */
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
