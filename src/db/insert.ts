/** Many rows in few statements. */
import type { Trx } from './open.ts';

/**
 * SQLite takes 32,766 values a statement; knex writes several rows as a compound select, of which it takes 500.
 * Fifty rows of our widest table stay below both, and more would not be faster.
 */
const rowsAStatement = 50;

export async function insertRows(trx: Trx, table: string, rows: object[]): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsAStatement) {
    await trx(table).insert(rows.slice(start, start + rowsAStatement));
  }
}
