/**
 * Statements of one transaction that do not build on each other: on SQLite side by side, because each wait for the
 * database is a turn of a busy event loop; on PostgreSQL, whose client takes one at a time, in their order.
 *
 * Where one fails, the others have ended before anybody hears of it: a statement that ran on behind the rollback would
 * be a transaction of its own.
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
