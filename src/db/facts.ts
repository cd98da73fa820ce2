/** What the database is, for those who look after it. */
import { migrationsOf } from './migrate.ts';
import { type Db, isPostgres } from './open.ts';

export interface DatabaseFacts {
  /** With its version. */
  engine: string;
  bytes: number;
  /** Migrations of this program that it has not had, and those it had that this program does not know. */
  pending: string[];
  unknown: string[];
}

export async function databaseFacts(db: Db): Promise<DatabaseFacts> {
  return { ...(isPostgres(db) ? await ofPostgres(db) : await ofSqlite(db)), ...(await migrationsOf(db)) };
}

async function ofPostgres(db: Db) {
  const { rows } = await db.raw(
    `select current_setting('server_version') as version, pg_database_size(current_database()) as bytes`,
  );
  return { engine: `PostgreSQL ${rows[0].version}`, bytes: Number(rows[0].bytes) };
}

async function ofSqlite(db: Db) {
  const [row] = await db.raw(
    `select sqlite_version() as version, page_count * page_size as bytes
     from pragma_page_count(), pragma_page_size()`,
  );
  return { engine: `SQLite ${row.version}`, bytes: Number(row.bytes) };
}
