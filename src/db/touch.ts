/** Says on emails that something happened to their recipients. */
import { given, query } from './given.ts';
import { isPostgres, type Trx } from './open.ts';

/** Locks them in the order of their ids, as all who lock several do, so that nobody waits for each other in a circle. */
export async function touchEmails(trx: Trx, ids: Iterable<string>, at: number): Promise<void> {
  const { from, column } = given(trx, { id: 'uuid' });
  const wanted = `select ${column('id')} from ${from}`;
  const inOrder = `select id from emails where id in (${wanted}) order by id for update`;
  await query(trx, `update emails set updated_at = ? where id in (${isPostgres(trx) ? inOrder : wanted})`, [
    at,
    JSON.stringify([...new Set(ids)].map((id) => ({ id }))),
  ]);
}
