/**
 * Loaded into a measured process (`node --import`): counts the statements that knex sends, and those of connections of their own
 * to PostgreSQL, by their text. On SIGUSR2 it writes the counts to the file that BENCH_STATEMENTS names.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isMainThread } from 'node:worker_threads';

type Query = (...values: unknown[]) => unknown;

const file = process.env.BENCH_STATEMENTS;
if (isMainThread && file) {
  const require = createRequire(import.meta.url);
  const counts = new Map<string, number>();
  const count = (text: string) => counts.set(text, (counts.get(text) ?? 0) + 1);
  const { prototype } = require('knex/lib/client') as { prototype: { query: Query } };
  const { query } = prototype;
  prototype.query = function (this: unknown, ...values) {
    const asked = values[1] as string | { sql: string };
    count(typeof asked === 'string' ? asked : asked.sql);
    return query.apply(this, values);
  };
  const client = (require('pg') as { Client: { prototype: { query: Query } } }).Client.prototype;
  const ask = client.query;
  client.query = function (this: unknown, ...values) {
    // Knex passes objects.
    if (typeof values[0] === 'string') count(values[0]);
    return ask.apply(this, values);
  };
  process.on('SIGUSR2', () => {
    writeFileSync(`${file}.new`, JSON.stringify([...counts]));
    renameSync(`${file}.new`, file);
  });
}
