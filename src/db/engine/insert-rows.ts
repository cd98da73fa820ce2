/**
 * Many rows in one statement, whose text is the same however many there are: the rows go as one JSON value. A text
 * with a placeholder for each value is built and compiled anew for every number of rows, at twice the cost.
 */
import { isPostgres, type Trx } from './open.ts';

/** The rows have the same members, each a column: texts, numbers, booleans, null. Bytes: `insertWithBytes`. */
export async function insertRows(trx: Trx, table: string, rows: object[]): Promise<void> {
  if (rows.length === 0) return;
  await trx.raw(...insertOf(trx, table, rows));
}

/**
 * The statement and its values, for one who adds to it. On SQLite a row's values go by their place, past which it seeks
 * sooner than past names; and as JSONB (3.51), for json_each makes a text of each row, which each `->>` parses again.
 */
export function insertOf(trx: Trx, table: string, rows: object[]): [sql: string, values: [string]] {
  const columns = Object.keys(rows[0]!);
  if (isPostgres(trx)) {
    const given = `json_populate_recordset(null::${table}, ?::json)`;
    return [`insert into ${table} (${columns}) select ${columns} from ${given}`, [JSON.stringify(rows)]];
  }
  return [
    `insert into ${table} (${columns}) select ${columns.map((_, index) => `value ->> ${index}`)} from jsonb_each(?)`,
    [JSON.stringify(rows.map((row) => columns.map((column) => (row as Record<string, unknown>)[column])))],
  ];
}

/** SQLite takes 500 rows a statement, and more than some dozens are no faster. */
const rowsAStatement = 50;

/** Bytes have no place in JSON. */
export async function insertWithBytes(trx: Trx, table: string, rows: object[]): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsAStatement) {
    await trx(table).insert(rows.slice(start, start + rowsAStatement));
  }
}
