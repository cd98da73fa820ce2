/** Says on emails that something happened to their recipients. */
import { jsonRows, query } from '../engine/json-rows.ts';
import { isPostgres, type Trx } from '../engine/open.ts';

/** Locks them in the order of their ids, as all who lock several do, so that nobody waits for each other in a circle. */
export async function bumpUpdatedAt(trx: Trx, ids: Iterable<string>, at: number): Promise<void> {
  const list = [...new Set(ids)];
  if (isPostgres(trx)) {
    // Twice as a value, which says in which partitions to look, and that they are few.
    await trx.raw(
      `update emails set updated_at = ? where id = any(?::uuid[])
         and id in (select id from emails where id = any(?::uuid[]) order by id for update)`,
      [at, list, list],
    );
    return;
  }
  const { from, column } = jsonRows(trx, { id: 'uuid' });
  await query(trx, `update emails set updated_at = ? where id in (select ${column('id')} from ${from})`, [
    at,
    JSON.stringify(list.map((id) => ({ id }))),
  ]);
}
