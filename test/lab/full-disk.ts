/**
 * A database whose disk is full, honestly: SQLite by its own limit of pages on the connections of this process
 * (SQLITE_FULL), PostgreSQL by a trigger that says what the server says then (disk_full, 53100).
 */
import sqlite3 from 'sqlite3';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { changeTable } from './database/change-table.ts';

const connections = new Set<sqlite3.Database>();
const { exec } = sqlite3.Database.prototype;

/** Notes every connection that is opened from now on; call it before anything is started. */
export function trackConnections(): void {
  sqlite3.Database.prototype.exec = function (this: sqlite3.Database, ...args: Parameters<typeof exec>) {
    connections.add(this);
    return exec.apply(this, args);
  };
}

const tables = ['emails', 'attempts', 'events'];

export async function fill(db: Db): Promise<void> {
  if (!isPostgres(db)) return limitPages(1);
  await db.raw(`create or replace function full_disk() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`);
  for (const table of tables) {
    await changeTable(
      db,
      table,
      `create trigger full_disk before insert on ${table} for each statement execute function full_disk()`,
    );
  }
}

export async function makeRoom(db: Db): Promise<void> {
  if (!isPostgres(db)) return limitPages(1_000_000);
  for (const table of tables) await changeTable(db, table, `drop trigger full_disk on ${table}`);
}

/** Fewer than there are: no page more. */
async function limitPages(pages: number): Promise<void> {
  for (const connection of connections) {
    await new Promise<void>((done) =>
      exec.call(connection, `pragma max_page_count = ${pages}`, () => done()),
    );
  }
}
