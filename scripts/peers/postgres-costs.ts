/** What PostgreSQL has done and spent, between two looks. */
import type { Db } from '../../src/db/engine/open.ts';
import { cpuSeconds } from './processes.ts';

export interface Costs {
  cpuSeconds: number;
  transactions: number;
  statements: number;
  walBytes: number;
}

/** Statements are counted where pg_stat_statements is loaded; NaN where it is not. */
export async function costsSoFar(db: Db, pid: number): Promise<Costs> {
  const { rows } = await db.raw(
    `select (select sum(xact_commit + xact_rollback) from pg_stat_database) as transactions,
       pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal`,
  );
  const statements = await db
    .raw('select sum(calls) as calls from pg_stat_statements')
    .then(({ rows: [row] }) => Number(row.calls))
    .catch(() => Number.NaN);
  const { transactions, wal } = rows[0];
  return {
    ...{ cpuSeconds: cpuSeconds([pid]), statements },
    ...{ transactions: Number(transactions), walBytes: Number(wal) },
  };
}

export function less(after: Costs, before: Costs): Costs {
  return {
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    transactions: after.transactions - before.transactions,
    statements: after.statements - before.statements,
    walBytes: after.walBytes - before.walBytes,
  };
}
