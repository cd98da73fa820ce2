/**
 * SQLite's side of a move: reads rows in the order of their rowid, or primary key in a table without, in batches bounded in rows and bytes. The caller's
 * transaction has the write lock, so rows that have been read cannot change.
 */
import { DatabaseError, type Trx } from '../../engine/open.ts';
import { converted, quoted, type Value } from './column-values.ts';
import type { Table } from './move-plan.ts';

export interface Batch {
  /** In the order of the table's columns. */
  rows: Value[][];
  /** The key of the last row; null: there are no more rows. */
  last: Key | null;
  /** Number of values with characters that PostgreSQL cannot store, which were replaced. */
  replaced: number;
}

/** The values of a table's key columns. */
export type Key = readonly (string | number)[];

/** Before the first row of a table. */
export const beforeAll: Key = [];

export const isSameKey = (one: Key, other: Key) => JSON.stringify(one) === JSON.stringify(other);

const maxRows = 2_000;
const maxBytes = 4 << 20;

export async function countRows(source: Trx, { name }: Table): Promise<number> {
  const [{ count }] = await source.raw(`select count(*) as count from ${quoted(name)}`);
  return count;
}

/** Reads the rows after a key, at least one if there is any. */
export async function readBatch(source: Trx, table: Table, after: Key): Promise<Batch> {
  const last = await endOfBatch(source, table, after);
  if (last === null) return { rows: [], last, replaced: 0 };
  const { name, columns, key } = table;
  const found: Record<string, string | number | Buffer | null>[] = await source.raw(
    `select ${keyColumns(table)}, ${columns.map((column) => quoted(column.name))} from ${quoted(name)}
     where ${follows(table, after)} and (${key}) <= (${key.map(() => '?')}) order by ${key}`,
    [...after, ...last],
  );
  let replaced = 0;
  const rows = found.map((row) =>
    columns.map((column) => {
      const value = row[column.name]!;
      try {
        const taken = converted(column, value);
        if (typeof value === 'string' && typeof taken === 'string' && value.includes('\0')) replaced++;
        return taken;
      } catch (error) {
        const at = `in the row of ${name} with ${key} ${keyOf(table, row)}`;
        throw new DatabaseError(`${at} ${(error as Error).message}; correct it in SQLite, then move again`);
      }
    }),
  );
  return { rows, last, replaced };
}

/** Reads only the sizes of the values. */
async function endOfBatch(source: Trx, table: Table, after: Key): Promise<Key | null> {
  const { name, columns, key } = table;
  const size = columns.map((column) => `coalesce(octet_length(${quoted(column.name)}), 0)`).join(' + ');
  const rows: Record<string, number>[] = await source.raw(
    `select ${keyColumns(table)}, ${size} as size from ${quoted(name)}
     where ${follows(table, after)} order by ${key} limit ${maxRows}`,
    [...after],
  );
  let bytes = 0;
  let last: Key | null = null;
  for (const row of rows) {
    bytes += row.size!;
    if (last !== null && bytes > maxBytes) break;
    last = keyOf(table, row);
  }
  return last;
}

/** Under names that no column of ours has. */
const keyColumns = ({ key }: Table) => key.map((column, at) => `${column} as "key ${at}"`);

const keyOf = ({ key }: Table, row: object): Key =>
  key.map((_, at) => (row as Record<string, string | number>)[`key ${at}`]!);

const follows = ({ key }: Table, { length }: Key) =>
  length === 0 ? 'true' : `(${key}) > (${key.map(() => '?')})`;

/** The highest AUTOINCREMENT value of each table, even if its row has been deleted. */
export async function givenNumbers(source: Trx): Promise<Map<string, number>> {
  const [table] = await source.raw("select 1 from sqlite_master where name = 'sqlite_sequence'");
  if (!table) return new Map();
  const rows: { name: string; seq: number }[] = await source.raw('select name, seq from sqlite_sequence');
  return new Map(rows.map(({ name, seq }) => [name, seq]));
}
