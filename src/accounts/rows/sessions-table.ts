/** Sessions of the dashboard. Only the SHA-256 of the browser's token is stored; deleting the row ends the session. */
import { newId } from '#platform/base/id.ts';
import { deleteExpired } from '#platform/database/engine/delete-old.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { number, records, text } from '#platform/database/engine/records.ts';
import { type User, users } from './users.ts';

const sessions = records({
  id: text,
  userId: text,
  /** IP address and user agent of the last sign-in. */
  address: text,
  agent: text,
  createdAt: number,
  seenAt: number,
  expiresAt: number,
});

export type Session = ReturnType<typeof sessions.read>;

export type NewSession = Pick<Session, 'userId' | 'address' | 'agent' | 'expiresAt'> & { hash: string };

export async function insertSession(db: Db, session: NewSession, now: number): Promise<string> {
  const id = newId();
  const { hash, ...members } = session;
  const row = sessions.write({ ...members, id, createdAt: now, seenAt: now });
  await db('sessions').insert({ ...row, hash });
  return id;
}

/** Returns the session with its user. The caller checks whether it is still valid. */
export async function findSession(db: Db, hash: string): Promise<{ session: Session; user: User } | null> {
  const row = await db('sessions').where({ hash }).first();
  if (!row) return null;
  const user = await db('users').where({ id: row.user_id }).first();
  return user ? { session: sessions.read(row), user: users.read(user) } : null;
}

export async function listSessions(db: Db, userId: string): Promise<Session[]> {
  return (await db('sessions').where({ user_id: userId }).orderBy('seen_at', 'desc')).map(sessions.read);
}

export async function recordSessionUse(db: Db, id: string, now: number): Promise<void> {
  await db('sessions').where({ id }).update({ seen_at: now });
}

/** False if the user has no such session. */
export async function endSession(db: Db, userId: string, id: string): Promise<boolean> {
  return (await db('sessions').where({ id, user_id: userId }).delete()) > 0;
}

/** Ends all sessions of the user, except the one to keep. */
export async function endSessions(db: Db, userId: string, keep?: string): Promise<number> {
  const query = db('sessions').where({ user_id: userId });
  if (keep !== undefined) query.whereNot({ id: keep });
  return query.delete();
}

export const forgetSessions = (db: Db, now: number) => deleteExpired(db, 'sessions', 'id', now);
