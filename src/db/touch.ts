/** Says on emails that something happened to their recipients. */
import type { Trx } from './open.ts';

/** Locks them in the order of their ids, as all who lock several do, so that nobody waits for each other in a circle. */
export async function touchEmails(trx: Trx, ids: Iterable<string>, at: number): Promise<void> {
  const inOrder = trx('emails')
    .whereIn('id', [...new Set(ids)])
    .orderBy('id')
    .forUpdate()
    .select('id');
  await trx('emails').whereIn('id', inOrder).update({ updated_at: at });
}
