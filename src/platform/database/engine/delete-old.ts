/** Deletes old rows, a bounded number per call, each call a short statement. All functions return how many were deleted. */
import type { Db, Trx } from './open.ts';

const maxRows = 500;

/** Deletes rows whose `expires_at` has passed. */
export function deleteExpired(db: Db, table: string, key: string, now: number): Promise<number> {
  const expired = db(table).where('expires_at', '<', now).limit(maxRows).select(key);
  return db(table).whereIn(key, expired).delete();
}

/**
 * Deletes the rows from before `until` among the first ones by `key`. The rows are inserted in the order of their keys, so
 * this needs no index on `time`.
 */
export async function deleteOldest(
  db: Db,
  { table, key, time }: { table: string; key: string; time: string },
  until: number,
): Promise<number> {
  const first = await db(table).orderBy(key).limit(maxRows).select(key, time);
  const old = first.filter((row) => row[time] < until).map((row) => row[key]);
  return old.length === 0 ? 0 : db(table).whereIn(key, old).delete();
}

/** Keeps the newest `max` rows that match. */
export async function deleteBeyond(
  trx: Trx,
  table: string,
  matching: Record<string, string | null>,
  max: number,
): Promise<number> {
  const rows = trx(table).where(matching).orderBy('id', 'desc').offset(max).limit(maxRows);
  const old: string[] = await rows.pluck('id');
  return old.length === 0 ? 0 : trx(table).whereIn('id', old).delete();
}
