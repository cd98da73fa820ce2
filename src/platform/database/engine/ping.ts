/** Asks the database for nothing but an answer, or for its time. */
import type { Db } from './open.ts';

/** Rejects while the database does not answer. */
export async function ping(db: Db): Promise<void> {
  await db.raw('select 1');
}

/** PostgreSQL's own time, in milliseconds. */
export async function readTime(db: Db): Promise<number> {
  const { rows } = await db.raw('select (extract(epoch from clock_timestamp()) * 1000)::bigint as now');
  return rows[0].now;
}
