/**
 * Runs independent statements of one transaction: in parallel on SQLite, where each wait for the database costs a turn of a
 * busy event loop; in sequence on PostgreSQL, whose client runs one at a time.
 *
 * If one fails, this rejects only after the others have ended: a statement that runs after the rollback would be a
 * transaction of its own.
 */
import { isPostgres, type Trx } from './open.ts';

export async function parallel<Results extends readonly unknown[]>(
  trx: Trx,
  statements: readonly [...{ [Index in keyof Results]: () => Promise<Results[Index]> }],
): Promise<Results> {
  if (isPostgres(trx)) {
    const results: unknown[] = [];
    for (const run of statements) results.push(await run());
    return results as unknown as Results;
  }
  const running = statements.map((run) => run());
  await Promise.allSettled(running);
  return (await Promise.all(running)) as unknown as Results;
}
