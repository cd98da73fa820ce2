/**
 * Runs queries of one transaction that do not depend on each other. On SQLite they are one call, because each call of the
 * driver wakes another thread and then this one, which costs more than a small query. On PostgreSQL they run in their order.
 */
import { query } from './json-rows.ts';
import { isPostgres, type Trx } from './open.ts';

export interface Read<Row, Result> {
  sql: string;
  values: string[];
  /** Names of the result's columns: texts, numbers and null, no bytes. */
  columns: readonly (keyof Row & string)[];
  resultOf(rows: Row[]): Result;
}

// biome-ignore lint/suspicious/noExplicitAny: each read has rows of its own
type Reads<Results extends readonly unknown[]> = { [Index in keyof Results]: Read<any, Results[Index]> };

export async function readTogether<Results extends readonly unknown[]>(
  trx: Trx,
  reads: readonly [...Reads<Results>],
): Promise<Results> {
  const rows = isPostgres(trx) ? await readInTurn(trx, reads) : await readAtOnce(trx, reads);
  return reads.map((read, index) => read.resultOf(rows[index]!)) as unknown as Results;
}

// biome-ignore lint/suspicious/noExplicitAny: each read has rows of its own
type AnyRead = Read<any, unknown>;

async function readInTurn(trx: Trx, reads: readonly AnyRead[]): Promise<unknown[][]> {
  const rows: unknown[][] = [];
  for (const { sql, values } of reads) rows.push(await query(trx, sql, values));
  return rows;
}

/** Each query is a column with the JSON of its rows, each of them an array of its values. */
async function readAtOnce(trx: Trx, reads: readonly AnyRead[]): Promise<object[][]> {
  const columns = reads.map(
    (read, index) =>
      `(select json_group_array(json_array(${read.columns.map((name) => `"${name}"`)})) from (${read.sql})) as read${index}`,
  );
  const values = reads.flatMap((read) => read.values);
  const [row] = await query<Record<string, string>>(trx, `select ${columns}`, values);
  return reads.map((read, index) =>
    JSON.parse(row![`read${index}`]!).map((fields: unknown[]) =>
      Object.fromEntries(read.columns.map((name, at) => [name, fields[at]])),
    ),
  );
}
