/**
 * Passes rows to a statement as a table named `given`, in one JSON value: the statement's text is the same for any number
 * of rows, so it is compiled once.
 */
import type { Knex } from 'knex';
import { type Db, isPostgres } from './open.ts';
import { fromHex } from './packed-json.ts';

interface JsonRows {
  /** Goes into the statement's FROM; its one placeholder takes the JSON of the rows. */
  from: string;
  column(name: string): string;
}

/**
 * `types`: the members of the rows with their PostgreSQL types. SQLite uses JSON's own types (as JSONB, see insert-rows.ts), but
 * for bytea, which is hexadecimal (packed-json.ts).
 */
export function jsonRows(db: Db, types: Record<string, string>): JsonRows {
  if (!isPostgres(db)) {
    const text = (name: string) => `given.value ->> '${name}'`;
    const column = (name: string) => (types[name] === 'bytea' ? fromHex(text(name)) : text(name));
    return { from: 'jsonb_each(?) as given', column };
  }
  const columns = Object.entries(types).map(([name, type]) => `${name} ${type}`);
  return {
    from: `json_to_recordset(?::json) as given(${columns.join(', ')})`,
    column: (name) => `given.${name}`,
  };
}

/** A column of the rows: its PostgreSQL type, and its value for one item. */
export type JsonColumns<Item> = Record<string, [type: string, read: (item: Item) => unknown]>;

/** The rows of a kind of items; `json` gives the value of the placeholder. On SQLite a row is an array (see insert-rows.ts). */
export function jsonItems<Item>(db: Db, columns: JsonColumns<Item>) {
  const entries = Object.entries(columns);
  if (!isPostgres(db)) {
    const names = Object.keys(columns);
    const textOf = (name: string) => `given.value ->> ${names.indexOf(name)}`;
    const rowOf = (item: Item) => entries.map(([, [, read]]) => read(item));
    return {
      from: 'jsonb_each(?) as given',
      column: (name: string) => (columns[name]![0] === 'bytea' ? fromHex(textOf(name)) : textOf(name)),
      json: (items: Iterable<Item>) => JSON.stringify(Array.from(items, rowOf)),
    };
  }
  const types = entries.map(([name, [type]]) => [name, type]);
  const rowOf = (item: Item) => {
    const row: Record<string, unknown> = {};
    for (const [name, [, read]] of entries) row[name] = read(item);
    return row;
  };
  return {
    ...jsonRows(db, Object.fromEntries(types)),
    json: (items: Iterable<Item>) => JSON.stringify(Array.from(items, rowOf)),
  };
}

/** A subquery for `id in (…)`, and the value of its one placeholder. */
export function idList(db: Db, ids: Iterable<string>): { select: string; value: string } {
  const { from, column } = jsonRows(db, { id: 'uuid' });
  return {
    select: `select ${column('id')} from ${from}`,
    value: JSON.stringify(Array.from(ids, (id) => ({ id }))),
  };
}

/** Runs a statement in SQL and returns its rows. */
export async function query<Row>(db: Db, sql: string, values: (string | number)[]): Promise<Row[]> {
  const result = await db.raw(sql, values);
  return isPostgres(db) ? result.rows : result;
}

/** PostgreSQL returns counts as text. */
export async function countOf(rows: Knex.QueryBuilder): Promise<number> {
  const [row] = await rows.count('* as count');
  return Number(row.count);
}

/**
 * Locks rows so that others can still insert rows that refer to them (foreign keys take a share of the key): outcomes are
 * recorded while an organization's sends are decided. SQLite has one writer, so it needs no lock.
 */
export const forUpdate = (db: Db) => (isPostgres(db) ? 'for no key update' : '');
