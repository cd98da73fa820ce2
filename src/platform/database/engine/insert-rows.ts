/**
 * Inserts many rows by one statement with one JSON value, whose text does not depend on the number of rows. A text with a
 * placeholder for each value must be built and compiled again for every number of rows, at twice the cost.
 */
import { isPostgres, type Trx } from './open.ts';
import { fromHex, toHex } from './packed-json.ts';
import { partsOf } from './parts-of.ts';

/**
 * All rows have the same members, one for each column: texts, numbers, booleans, null, and hexadecimal for the columns of
 * bytes, `packed` and `raw`. For many bytes see `insertWithBytes`.
 */
export async function insertRows(trx: Trx, table: string, rows: object[]): Promise<void> {
  if (rows.length === 0) return;
  await trx.raw(...insertOf(trx, table, rows));
}

/**
 * Returns the statement and its values, for callers that add to it. On SQLite, a row is a JSON array, because values are found
 * faster by index than by name; and JSONB (3.51), because json_each makes a text of each row, which each `->>` parses again.
 */
export function insertOf(trx: Trx, table: string, rows: object[]): [sql: string, values: [string]] {
  const columns = Object.keys(rows[0]!);
  if (isPostgres(trx)) {
    const given = `json_populate_recordset(null::${table}, ?::json)`;
    return [`insert into ${table} (${columns}) select ${columns} from ${given}`, [JSON.stringify(rows)]];
  }
  const expression = (column: string, index: number) =>
    isBytes(column) ? fromHex(`value ->> ${index}`) : `value ->> ${index}`;
  return [
    `insert into ${table} (${columns}) select ${columns.map(expression)} from jsonb_each(?)`,
    [JSON.stringify(rows.map((row) => columns.map((column) => (row as Record<string, unknown>)[column])))],
  ];
}

/** A row with bytes in the column `raw`. */
export interface RawRow {
  [column: string]: unknown;
  raw: Buffer;
}

/** The bytes of `insertRawRows`: those that may be copied once more, and on PostgreSQL those that may be JSON. */
export const maxRawBytes = (trx: Trx) => (isPostgres(trx) ? 256 * 1024 : 4 * 1024 * 1024);

/**
 * Inserts rows with at most `maxRawBytes` in all by one call of `raw`. On SQLite all bytes are one value, of which each row
 * takes its part: as hexadecimal they would be written, copied and read again at twice their length.
 */
export async function insertRawRows(trx: Trx, table: string, rows: RawRow[]): Promise<void> {
  if (rows.length === 0) return;
  if (isPostgres(trx)) return insertRows(trx, table, rows.map(withHex));
  const columns = Object.keys(rows[0]!).filter((column) => column !== 'raw');
  const [start, length] = [columns.length, columns.length + 1];
  let next = 1;
  const given = rows.map((row) => {
    const part = [next, row.raw.length];
    next += row.raw.length;
    return [...columns.map((column) => row[column]), ...part];
  });
  await trx.raw(
    `insert into ${table} (${columns}, raw)
     select ${columns.map((_, index) => `value ->> ${index}`)}, substr(?, value ->> ${start}, value ->> ${length})
     from jsonb_each(?)`,
    [Buffer.concat(rows.map(({ raw }) => raw)), JSON.stringify(given)],
  );
}

export const bytesOf = (rows: RawRow[]) => rows.reduce((sum, { raw }) => sum + raw.length, 0);

const withHex = (row: RawRow) => ({ ...row, raw: toHex(row.raw) });

const isBytes = (column: string) => column === 'packed' || column === 'raw';

/** SQLite takes 500 rows per statement, but more than some dozens are not faster. */
const rowsPerStatement = 50;

/** Bytes as values of their own, which large ones need: as hexadecimal in JSON they take four times their size in memory. */
export async function insertWithBytes(trx: Trx, table: string, rows: object[]): Promise<void> {
  for (const part of partsOf(rows, rowsPerStatement)) await trx(table).insert(part);
}
