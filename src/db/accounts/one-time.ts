/** One-time links and recovery codes: kept as their SHA-256, and gone with their use. */
import type { Db, Trx } from '../engine/open.ts';

/** What a link is for: the first operator of all, or the password of somebody new, or of somebody who has lost it. */
export type LinkPurpose = 'set-up' | 'invitation' | 'reset';

export interface OneTimeLink {
  hash: string;
  purpose: LinkPurpose;
  /** Null for a set-up: whoever comes first. */
  userId: string | null;
  expiresAt: number;
}

/** A user has one link at a time: a new one ends those before. */
export async function insertLink(db: Db, link: OneTimeLink, now: number): Promise<void> {
  await db.transaction(async (trx) => {
    if (link.userId !== null) {
      // Of two links that are made at once, the second waits for the first, and ends it.
      await trx('users').where({ id: link.userId }).forNoKeyUpdate().first('id');
      await trx('one_time_tokens').where({ user_id: link.userId }).delete();
    }
    await trx('one_time_tokens').insert({
      hash: link.hash,
      purpose: link.purpose,
      user_id: link.userId,
      created_at: now,
      expires_at: link.expiresAt,
    });
  });
}

export async function findLink(db: Db, hash: string, now: number): Promise<OneTimeLink | null> {
  const row = await db('one_time_tokens').where({ hash }).where('expires_at', '>', now).first();
  if (!row) return null;
  return { hash, purpose: row.purpose, userId: row.user_id, expiresAt: row.expires_at };
}

/** True for one caller alone. */
export async function useLink(trx: Trx, hash: string, now: number): Promise<boolean> {
  return (await trx('one_time_tokens').where({ hash }).where('expires_at', '>', now).delete()) > 0;
}

/** All links of set-up end at once. Of two who use one, or one each, the second finds nothing left to end. */
export async function useSetUp(trx: Trx, hash: string, now: number): Promise<boolean> {
  if ((await findLink(trx, hash, now))?.purpose !== 'set-up') return false;
  return (await trx('one_time_tokens').where({ purpose: 'set-up' }).delete()) > 0;
}

const atOnce = 500;

export async function forgetLinks(db: Db, now: number): Promise<number> {
  const old = db('one_time_tokens').where('expires_at', '<', now).limit(atOnce).select('hash');
  return db('one_time_tokens').whereIn('hash', old).delete();
}

/** In the place of those before. */
export async function setRecoveryCodes(trx: Trx, userId: string, hashes: string[]): Promise<void> {
  await trx('recovery_codes').where({ user_id: userId }).delete();
  if (hashes.length > 0)
    await trx('recovery_codes').insert(hashes.map((hash) => ({ user_id: userId, hash })));
}

/** True for one caller alone. */
export async function useRecoveryCode(db: Db, userId: string, hash: string): Promise<boolean> {
  return (await db('recovery_codes').where({ user_id: userId, hash }).delete()) > 0;
}

export async function countRecoveryCodes(db: Db, userId: string): Promise<number> {
  const row = await db('recovery_codes').where({ user_id: userId }).count({ count: '*' }).first();
  return Number(row?.count);
}
