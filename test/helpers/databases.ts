/**
 * A database of its own for each test, on both kinds. SQLite needs a directory; PostgreSQL is one server for the
 * whole run, started by scripts/test.ts, which names it in TEST_POSTGRES_URL.
 */
import { randomBytes } from 'node:crypto';
import pg from 'pg';

export const kinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof kinds)[number];

export interface TestDatabase {
  /** Null: SQLite in the data directory. */
  url: string | null;
  drop(): Promise<void>;
}

export async function createDatabase(kind: DatabaseKind): Promise<TestDatabase> {
  if (kind === 'sqlite') return { url: null, drop: async () => {} };
  const server = process.env.TEST_POSTGRES_URL;
  if (!server) throw new Error('TEST_POSTGRES_URL is not set; run the tests with npm test');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await query(server, `create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => query(server, `drop database ${name} with (force)`) };
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
