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

/** The statement and its values, for one who adds to it. */
export function insertOf(trx: Trx, table: string, rows: object[]): [sql: string, values: [string]] {
  const columns = Object.keys(rows[0]!);
  const from = isPostgres(trx)
    ? `select ${columns} from json_populate_recordset(null::${table}, ?::json)`
    : `select ${columns.map((column) => `value ->> '${column}'`)} from json_each(?)`;
  return [`insert into ${table} (${columns}) ${from}`, [JSON.stringify(rows)]];
}

/** SQLite takes 500 rows a statement, and more than some dozens are no faster. */
const rowsAStatement = 50;

/** Bytes have no place in JSON. */
export async function insertWithBytes(trx: Trx, table: string, rows: object[]): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsAStatement) {
    await trx(table).insert(rows.slice(start, start + rowsAStatement));
  }
}
