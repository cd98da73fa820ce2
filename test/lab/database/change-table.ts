/**
 * Changes a table of a running server, for example its triggers. On PostgreSQL, a change of a partitioned table takes its
 * partitions as well, and in no certain order; a statement that has the table and waits for a partition would end in a
 * deadlock, and PostgreSQL ends either of the two. So the table is locked first, as every statement does.
 */
import { type Db, isPostgres } from '#platform/database/engine/open.ts';

export async function changeTable(db: Db, table: string, sql: string): Promise<void> {
  await db.transaction(async (trx) => {
    if (isPostgres(db)) await trx.raw(`lock table only ${table} in access exclusive mode`);
    await trx.raw(sql);
  });
}
