/** One-time links and recovery codes. Only their SHA-256 is stored; using one deletes it. */

import { deleteExpired } from '#platform/database/engine/delete-old.ts';
import { countOf } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { number, orNull, records, text, value } from '#platform/database/engine/records.ts';

/** Creates the first operator, sets a new user's password, resets a lost one, signs a user in once, or (`postern dev`) always. */
export type LinkPurpose = 'set-up' | 'invitation' | 'reset' | 'open' | 'sign-in';

const links = records({
  hash: text,
  purpose: value<LinkPurpose>(),
  /** Null for a set-up link. */
  userId: orNull(text),
  expiresAt: number,
});

export type OneTimeLink = ReturnType<typeof links.read>;

/** A user has one link at a time: a new link replaces the old one. */
export async function insertLink(db: Db, link: OneTimeLink, now: number): Promise<void> {
  await db.transaction(async (trx) => {
    if (link.userId !== null) {
      // If two links are created at the same time, the second waits for the first, and replaces it.
      await trx('users').where({ id: link.userId }).forNoKeyUpdate().first('id');
      await trx('one_time_tokens').where({ user_id: link.userId }).delete();
    }
    await trx('one_time_tokens').insert({ ...links.write(link), created_at: now });
  });
}

export async function findLink(db: Db, hash: string, now: number): Promise<OneTimeLink | null> {
  const row = await db('one_time_tokens').where({ hash }).where('expires_at', '>', now).first();
  return row ? links.read(row) : null;
}

/** True for only one of several callers. */
export async function useLink(trx: Trx, hash: string, now: number): Promise<boolean> {
  return (await trx('one_time_tokens').where({ hash }).where('expires_at', '>', now).delete()) > 0;
}

/** Ends all set-up links together, so that only the first of several callers succeeds, also with different links. */
export async function useSetUp(trx: Trx, hash: string, now: number): Promise<boolean> {
  if ((await findLink(trx, hash, now))?.purpose !== 'set-up') return false;
  return (await trx('one_time_tokens').where({ purpose: 'set-up' }).delete()) > 0;
}

export async function endLinks(trx: Trx, userId: string): Promise<void> {
  await trx('one_time_tokens').where({ user_id: userId }).delete();
}

export const forgetLinks = (db: Db, now: number) => deleteExpired(db, 'one_time_tokens', 'hash', now);

/** Replaces the user's codes. */
export async function setRecoveryCodes(trx: Trx, userId: string, hashes: string[]): Promise<void> {
  await trx('recovery_codes').where({ user_id: userId }).delete();
  if (hashes.length > 0)
    await trx('recovery_codes').insert(hashes.map((hash) => ({ user_id: userId, hash })));
}

/** True for only one of several callers. */
export async function useRecoveryCode(db: Db, userId: string, hash: string): Promise<boolean> {
  return (await db('recovery_codes').where({ user_id: userId, hash }).delete()) > 0;
}

export async function countRecoveryCodes(db: Db, userId: string): Promise<number> {
  return countOf(db('recovery_codes').where({ user_id: userId }));
}
