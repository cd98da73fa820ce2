import { insertOf } from '#platform/database/engine/insert-rows.ts';
import type { Trx } from '#platform/database/engine/open.ts';

/** Adds each row's sums to those of the row with the same `names`, the columns of the table's primary key. */
export async function addSums(trx: Trx, table: string, names: string[], rows: object[]): Promise<void> {
  if (rows.length === 0) return;
  const [insert, values] = insertOf(trx, table, rows);
  const columns = Object.keys(rows[0]!).filter((column) => !names.includes(column));
  const added = columns.map((column) => `${column} = ${table}.${column} + excluded.${column}`);
  // Without `where true`, SQLite parses `on` after a table as the condition of a join.
  await trx.raw(`${insert} where true on conflict (${names}) do update set ${added}`, values);
}
