/** The real PostgreSQL of a process that simulates several nodes, reached beside the simulated network. Start it before that. */
import { writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import type { SQLInputValue } from 'node:sqlite';
import pg from 'pg';
import { startPostgres } from '../../database/postgres.ts';

// The real one, before it is replaced.
const RealSocket = net.Socket;
const name = 'simulated';

/** Nothing that it does by itself, or by the number of processors. */
const settings = {
  autovacuum: 'off',
  jit: 'off',
  max_parallel_workers_per_gather: 0,
  track_activities: 'on',
};

export interface SharedPostgres {
  port: number;
  /** Makes an empty database. */
  reset(): Promise<void>;
  read(table: string): Promise<{ names: string[]; rows: SQLInputValue[][] }>;
}

export async function startSharedPostgres(): Promise<SharedPostgres> {
  const { url } = await startPostgres(tmpdir(), settings);
  const admin = await connect(url);
  const { rows } = await admin.query('show hba_file');
  // Only for connections from this machine: a simulated handshake needs no password.
  writeFileSync(rows[0].hba_file, 'host all all 127.0.0.1/32 trust\n');
  await admin.query('select pg_reload_conf()');
  let reader: pg.Client | null = null;
  return {
    port: Number(new URL(url).port),
    async reset() {
      await reader?.end();
      await admin.query(`drop database if exists ${name} with (force)`);
      await admin.query(`create database ${name}`);
      reader = await connect(url.replace(/\/postgres$/, `/${name}`));
    },
    async read(table) {
      const { fields, rows } = await reader!.query({ text: `select * from ${table}`, rowMode: 'array' });
      return { names: fields.map((field) => field.name), rows: rows.map((row) => row.map(plain)) };
    },
  };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, stream: () => new RealSocket() });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** As SQLite has it. */
function plain(value: unknown): SQLInputValue {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return Number(value);
  return value !== null && typeof value === 'object' && !Buffer.isBuffer(value)
    ? JSON.stringify(value)
    : (value as SQLInputValue);
}
