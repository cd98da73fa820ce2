/**
 * Compares a table on both sides by the number of its rows and a digest. The digest is the sum of the rows' SHA-256, so the
 * order of the rows does not matter, and the databases need not sort alike. Each side reads its own rows, so PostgreSQL
 * returns a few numbers, however many rows there are.
 */
import { hash } from 'node:crypto';
import type { Db, Trx } from '../../engine/open.ts';
import { quoted, rowHash, rowHashSql } from './column-values.ts';
import type { Table } from './move-plan.ts';
import { beforeAll, type Key, readBatch } from './sqlite-source.ts';

export interface Sum {
  rows: number;
  /** Hexadecimal. */
  digest: string;
}

/** A hash is summed in four parts of 60 bits, each of which fits into PostgreSQL's bigint. */
const parts = [0, 1, 2, 3].map((part) => part * 15);

const digestOf = (rows: number, sums: (bigint | string)[]) =>
  hash('sha256', [rows, ...sums].join(' '), 'hex');

/** `replaced`: number of values with characters that PostgreSQL cannot store. */
export async function sumOfSource(
  source: Trx,
  table: Table,
  onRows: (rows: number) => void,
): Promise<Sum & { replaced: number }> {
  const sums = parts.map(() => 0n);
  let [rows, replaced] = [0, 0];
  for (let after: Key = beforeAll; ; ) {
    const batch = await readBatch(source, table, after);
    if (batch.last === null) break;
    for (const row of batch.rows) {
      const hex = rowHash(table.columns, row);
      for (const [at, start] of parts.entries()) sums[at]! += BigInt(`0x${hex.slice(start, start + 15)}`);
    }
    rows += batch.rows.length;
    replaced += batch.replaced;
    onRows(batch.rows.length);
    after = batch.last;
  }
  return { rows, digest: digestOf(rows, sums), replaced };
}

export async function sumOfTarget(target: Db, { name, columns }: Table): Promise<Sum> {
  const sums = parts.map(
    (start) => `coalesce(sum(('x' || substr(hash, ${start + 1}, 15))::bit(60)::bigint), 0)::text`,
  );
  const { rows } = await target.raw(
    `select count(*) as count, array[${sums.join(', ')}] as sums
     from (select ${rowHashSql(columns)} as hash from ${quoted(name)}) as hashes`,
  );
  const [{ count, sums: found }] = rows as [{ count: number; sums: string[] }];
  return { rows: count, digest: digestOf(count, found) };
}
