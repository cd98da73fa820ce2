/**
 * Destinations or recipient domains that the operator has suspended until a given time. Expired suspensions are ignored, and
 * deleted when the next one is written.
 */
import type { Db } from '#platform/database/engine/open.ts';
import { number, records, text } from '#platform/database/engine/records.ts';

const suspensions = records({ destination: text, reason: text, createdAt: number, until: number });

export type StoredSuspension = ReturnType<typeof suspensions.read>;

/** A destination has one suspension: a new one replaces the old one. */
export async function suspend(db: Db, suspension: StoredSuspension): Promise<void> {
  await deleteExpired(db, suspension.createdAt);
  await db('suspensions').insert(suspensions.write(suspension)).onConflict('destination').merge();
}

/** Returns the suspension that was ended; null if there was none. */
export async function resume(db: Db, destination: string, now: number): Promise<StoredSuspension | null> {
  await deleteExpired(db, now);
  const row = await db('suspensions').where({ destination }).first();
  if (row) await db('suspensions').where({ destination }).delete();
  return row ? suspensions.read(row) : null;
}

async function deleteExpired(db: Db, now: number): Promise<void> {
  await db('suspensions').where('until', '<=', now).delete();
}
