/** Creates and rotates API keys, for API, command line and dashboard. The key itself is returned only once. */
import { endKeyAt, insertKey, type KeyRecord, revokeKey } from '../db/accounts/keys.ts';
import type { Db } from '../db/engine/open.ts';
import { newKey } from './api-keys.ts';

export interface MadeKey {
  id: string;
  key: string;
  scopes: string[];
}

export async function makeKey(
  db: Db,
  { orgId, label, scopes }: Pick<KeyRecord, 'orgId' | 'label' | 'scopes'>,
  now: number,
): Promise<MadeKey> {
  const { key, hash, hint } = newKey();
  const id = await insertKey(db, { orgId, label, scopes, hash, hint }, now);
  return { id, key, scopes };
}

/** A new key with the same label and scopes; the old one ends after `graceMs`. Null if the old key already has an end. */
export async function rotateKey(db: Db, old: KeyRecord, now: number, graceMs = 0): Promise<MadeKey | null> {
  return db.transaction(async (trx) => ((await end(trx, old, now, graceMs)) ? makeKey(trx, old, now) : null));
}

async function end(db: Db, { id, endsAt }: KeyRecord, now: number, graceMs: number): Promise<boolean> {
  if (endsAt !== null) return false;
  return graceMs > 0 ? endKeyAt(db, id, now + graceMs) : revokeKey(db, id, now);
}
