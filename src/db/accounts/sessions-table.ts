/** Who is signed in where. The database has the SHA-256 of what the browser has; a session ends by its row's end. */
import { newId } from '../../base/id.ts';
import type { Db } from '../engine/open.ts';
import { type User, userOf } from './users.ts';

export interface Session {
  id: string;
  userId: string;
  /** Where from, and with what, as of the last sign-in. */
  address: string;
  agent: string;
  createdAt: number;
  seenAt: number;
  expiresAt: number;
}

export type NewSession = Pick<Session, 'userId' | 'address' | 'agent' | 'expiresAt'> & { hash: string };

export async function insertSession(db: Db, session: NewSession, now: number): Promise<string> {
  const id = newId();
  await db('sessions').insert({
    id,
    hash: session.hash,
    user_id: session.userId,
    address: session.address,
    agent: session.agent,
    created_at: now,
    seen_at: now,
    expires_at: session.expiresAt,
  });
  return id;
}

/** With its user. Whether it still holds is the caller's to say. */
export async function findSession(db: Db, hash: string): Promise<{ session: Session; user: User } | null> {
  const row = await db('sessions').where({ hash }).first();
  if (!row) return null;
  const user = await db('users').where({ id: row.user_id }).first();
  return user ? { session: sessionOf(row), user: userOf(user) } : null;
}

export async function listSessions(db: Db, userId: string): Promise<Session[]> {
  return (await db('sessions').where({ user_id: userId }).orderBy('seen_at', 'desc')).map(sessionOf);
}

export async function touchSession(db: Db, id: string, now: number): Promise<void> {
  await db('sessions').where({ id }).update({ seen_at: now });
}

/** Only one of the user's own; false where there is none. */
export async function endSession(db: Db, userId: string, id: string): Promise<boolean> {
  return (await db('sessions').where({ id, user_id: userId }).delete()) > 0;
}

/** All of the user's, but the one to keep. */
export async function endSessions(db: Db, userId: string, keep?: string): Promise<number> {
  const query = db('sessions').where({ user_id: userId });
  if (keep !== undefined) query.whereNot({ id: keep });
  return query.delete();
}

const atOnce = 500;

export async function forgetSessions(db: Db, now: number): Promise<number> {
  const old = db('sessions').where('expires_at', '<', now).limit(atOnce).select('id');
  return db('sessions').whereIn('id', old).delete();
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function sessionOf(row: any): Session {
  return {
    id: row.id,
    userId: row.user_id,
    address: row.address,
    agent: row.agent,
    createdAt: row.created_at,
    seenAt: row.seen_at,
    expiresAt: row.expires_at,
  };
}
