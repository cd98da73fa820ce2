/** Sets `updated_at` of emails when the state of a recipient changes. */
import { idList, query } from '#platform/database/engine/json-rows.ts';
import { isPostgres, type Trx } from '#platform/database/engine/open.ts';

/** Locks the emails in the order of their ids, as all transactions that lock several do, so that they never deadlock. */
export async function bumpUpdatedAt(trx: Trx, ids: Iterable<string>, at: number): Promise<void> {
  const list = [...new Set(ids)];
  if (isPostgres(trx)) {
    // The ids are given twice, so that the planner reads only their partitions and expects few rows.
    await trx.raw(
      `update emails set updated_at = ? where id = any(?::uuid[])
         and id in (select id from emails where id = any(?::uuid[]) order by id for update)`,
      [at, list, list],
    );
    return;
  }
  const { select, value } = idList(trx, list);
  await query(trx, `update emails set updated_at = ? where id in (${select})`, [at, value]);
}
