/**
 * Rows of the persistent caches (platform/base/persistent-cache.ts): one per kind and name, the value as JSON. The last writer
 * wins.
 */
import type { PersistentCacheRows } from '#platform/base/persistent-cache.ts';
import type { Db } from '#platform/database/engine/open.ts';

export function learnedRows<Value>(db: Db, kind: string): PersistentCacheRows<Value> {
  return {
    async read(name) {
      const row = await db('learned').where({ kind, name }).select('value', 'expires_at').first();
      return row ? { value: JSON.parse(row.value), expiresAt: row.expires_at } : null;
    },
    async write(name, { value, expiresAt }) {
      await db('learned')
        .insert({ kind, name, value: JSON.stringify(value), expires_at: expiresAt })
        .onConflict(['kind', 'name'])
        .merge();
    },
  };
}

/** Deletes expired rows, a bounded number per call; returns how many. */
export async function forgetLearned(db: Db, now: number): Promise<number> {
  const rows = await db('learned')
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(1000)
    .select('kind', 'name');
  if (rows.length === 0) return 0;
  return db('learned')
    .where('expires_at', '<=', now)
    .whereIn(
      ['kind', 'name'],
      rows.map((row) => [row.kind, row.name]),
    )
    .delete();
}
