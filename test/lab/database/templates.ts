/**
 * A database with the schema in it, of each kind, made once for the whole run by scripts/test.ts: a copy takes a tenth
 * of what migrating a new one does. Migrating itself is what test/platform/database/schema.test.ts and
 * test/slow/upgrade.test.ts look at.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';

/** The name of PostgreSQL's. */
export const templateName = 'migrated';

/** The file of SQLite's, in the directory given. */
export const templateFile = (directory: string) => join(directory, 'postern.sqlite');

/** `server`: the URL of a database there that one may connect to. */
export async function makeTemplates(server: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await migrated(directory, null);
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`create database ${templateName}`);
  await client.end();
  const url = new URL(server);
  url.pathname = `/${templateName}`;
  await migrated(directory, url.href);
}

async function migrated(dataDir: string, databaseUrl: string | null): Promise<void> {
  const db = await openDatabase({ dataDir, databaseUrl });
  try {
    await migrate(db);
  } finally {
    await db.destroy();
  }
}
