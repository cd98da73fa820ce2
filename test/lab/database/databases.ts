/**
 * A database of its own for each test, on both kinds. SQLite needs a directory; PostgreSQL is one server for the
 * whole run, started by scripts/test.ts, which names it in TEST_POSTGRES_URL, and in TEST_TEMPLATES the directory of
 * what copies are made of.
 */
import { randomBytes } from 'node:crypto';
import { copyFile } from 'node:fs/promises';
import pg from 'pg';
import { templateFile, templateName } from './templates.ts';

export const kinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof kinds)[number];

/** For tests that say nothing about SQL: SQLite in `npm test`; `npm run test:slow` repeats them on PostgreSQL. */
export const oneKind: DatabaseKind = process.env.TEST_SLOW ? 'postgres' : 'sqlite';

/** For what takes long: SQLite in `npm test`, PostgreSQL in the slow run. `rows/` has the statements on both. */
export const journeyKinds = [oneKind];

export interface TestDatabase {
  /** Null: SQLite in the data directory. */
  url: string | null;
  drop(): Promise<void>;
}

/** An empty one. */
export async function createDatabase(kind: DatabaseKind): Promise<TestDatabase> {
  return kind === 'sqlite' ? inDataDir : create();
}

/** With the schema in it already; SQLite's is put into the data directory. */
export async function createMigrated(kind: DatabaseKind, dataDir: string): Promise<TestDatabase> {
  const templates = requiredEnv('TEST_TEMPLATES');
  if (kind === 'postgres') return create(`template ${templateName} strategy file_copy`);
  await copyFile(templateFile(templates), templateFile(dataDir));
  return inDataDir;
}

const inDataDir: TestDatabase = { url: null, drop: async () => {} };

/** As statements.ts knows it. */
export const nameOf = ({ url }: Pick<TestDatabase, 'url'>, dataDir: string) =>
  url ? new URL(url).pathname.slice(1) : templateFile(dataDir);

async function create(how = ''): Promise<TestDatabase> {
  const server = requiredEnv('TEST_POSTGRES_URL');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await query(server, `create database ${name} ${how}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => query(server, `drop database ${name} with (force)`) };
}

type Query = (sql: string, values: string[]) => Promise<unknown>;

/** Runs statements in this PostgreSQL database as a role that may only connect to it. */
export async function asRoleWithoutRights(url: string, run: (query: Query) => Promise<void>): Promise<void> {
  const name = `nobody_${randomBytes(6).toString('hex')}`;
  await query(url, `create role ${name} login password '${name}'`);
  const login = new URL(url);
  login.username = name;
  login.password = name;
  const client = new pg.Client({ connectionString: login.href });
  await client.connect();
  try {
    await run((sql, values) => client.query(sql, values));
  } finally {
    await client.end();
    await query(url, `drop role ${name}`);
  }
}

function requiredEnv(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run the tests with npm test`);
  return value;
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
