/**
 * Destinations that get no mail for a while, by the operator's word: a recipient domain or a destination's name, why,
 * and until when. What has lapsed is no suspension to any reader, and is deleted when the next one is written.
 */
import type { Db } from '../engine/open.ts';

export interface Suspension {
  destination: string;
  reason: string;
  createdAt: number;
  until: number;
}

/** A destination has one suspension: a new one takes the place of the old. */
export async function suspend(db: Db, { destination, reason, createdAt, until }: Suspension): Promise<void> {
  await forgetLapsed(db, createdAt);
  await db('suspensions')
    .insert({ destination, reason, created_at: createdAt, until })
    .onConflict('destination')
    .merge();
}

/** The suspension that was lifted, or null where there was none. */
export async function resume(db: Db, destination: string, now: number): Promise<Suspension | null> {
  await forgetLapsed(db, now);
  const row = await db('suspensions').where({ destination }).first();
  if (row) await db('suspensions').where({ destination }).delete();
  return row ? fromRow(row) : null;
}

async function forgetLapsed(db: Db, now: number): Promise<void> {
  await db('suspensions').where('until', '<=', now).delete();
}

/** Those that hold at `now`. */
export async function listSuspensions(db: Db, now: number): Promise<Suspension[]> {
  return (await db('suspensions').where('until', '>', now).orderBy('destination')).map(fromRow);
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function fromRow(row: any): Suspension {
  return {
    destination: row.destination,
    reason: row.reason,
    createdAt: row.created_at,
    until: row.until,
  };
}
