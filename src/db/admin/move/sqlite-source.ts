/**
 * SQLite's side of a move: reads rows in the order of their rowid, in batches bounded in rows and bytes. The caller's
 * transaction has the write lock, so rows that have been read cannot change.
 */
import { DatabaseError, type Trx } from '../../engine/open.ts';
import { converted, quoted, type Value } from './column-values.ts';
import type { Table } from './move-plan.ts';

export interface Batch {
  /** In the order of the table's columns. */
  rows: Value[][];
  /** The last rowid; null: there are no more rows. */
  last: number | null;
  /** Number of values with characters that PostgreSQL cannot store, which were replaced. */
  replaced: number;
}

/** Before the first rowid of a table. */
export const beforeAll = Number.MIN_SAFE_INTEGER;

const maxRows = 2_000;
const maxBytes = 4 << 20;

export async function countRows(source: Trx, { name }: Table): Promise<number> {
  const [{ count }] = await source.raw(`select count(*) as count from ${quoted(name)}`);
  return count;
}

/** Reads the rows after a rowid, at least one if there is any. */
export async function readBatch(source: Trx, table: Table, after: number): Promise<Batch> {
  const last = await endOfBatch(source, table, after);
  if (last === null) return { rows: [], last, replaced: 0 };
  const { name, columns } = table;
  const found: Record<string, string | number | Buffer | null>[] = await source.raw(
    `select rowid as "rowid of it", ${columns.map((column) => quoted(column.name))} from ${quoted(name)}
     where rowid > ? and rowid <= ? order by rowid`,
    [after, last],
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
        const at = `in the row of ${name} with rowid ${row['rowid of it']}`;
        throw new DatabaseError(`${at} ${(error as Error).message}; correct it in SQLite, then move again`);
      }
    }),
  );
  return { rows, last, replaced };
}

/** Reads only the sizes of the values. */
async function endOfBatch(source: Trx, { name, columns }: Table, after: number): Promise<number | null> {
  const size = columns.map((column) => `coalesce(octet_length(${quoted(column.name)}), 0)`).join(' + ');
  const rows: { id: number; size: number }[] = await source.raw(
    `select rowid as id, ${size} as size from ${quoted(name)} where rowid > ? order by rowid limit ${maxRows}`,
    [after],
  );
  let bytes = 0;
  let last: number | null = null;
  for (const row of rows) {
    bytes += row.size;
    if (last !== null && bytes > maxBytes) break;
    last = row.id;
  }
  return last;
}

/** The highest AUTOINCREMENT value of each table, even if its row has been deleted. */
export async function givenNumbers(source: Trx): Promise<Map<string, number>> {
  const [table] = await source.raw("select 1 from sqlite_master where name = 'sqlite_sequence'");
  if (!table) return new Map();
  const rows: { name: string; seq: number }[] = await source.raw('select name, seq from sqlite_sequence');
  return new Map(rows.map(({ name, seq }) => [name, seq]));
}
