/**
 * Loaded into a measured process (`node --import`): counts the statements that knex sends, and on SIGUSR2 writes the sum to
 * the file that BENCH_STATEMENTS names.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isMainThread } from 'node:worker_threads';

type Query = (...values: unknown[]) => unknown;

const file = process.env.BENCH_STATEMENTS;
if (isMainThread && file) {
  const { prototype } = createRequire(import.meta.url)('knex/lib/client') as {
    prototype: { query: Query };
  };
  const { query } = prototype;
  let count = 0;
  prototype.query = function (this: unknown, ...values) {
    count += 1;
    return query.apply(this, values);
  };
  process.on('SIGUSR2', () => writeFileSync(file, String(count)));
}
