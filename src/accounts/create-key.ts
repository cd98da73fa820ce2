/** Creates, rotates and revokes API keys, for API, command line and dashboard. The key itself is returned only once. */

import { endKeyAt, findKey, insertKey, type KeyRecord, revokeKey } from '#accounts/rows/keys.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { newKey } from './api-keys.ts';
import { requireStreamName } from './manage-streams.ts';

export interface MadeKey extends Pick<KeyRecord, 'id' | 'label' | 'scopes' | 'strict'> {
  /** Absent: `transactional`. */
  stream?: string;
  key: string;
  test: boolean;
}

type WantedKey = Pick<KeyRecord, 'orgId' | 'label' | 'scopes'> & {
  /** As `test`, if it is not given: what is wrong is best found before anything is sent. */
  strict?: boolean | undefined;
  test?: boolean | undefined;
  stream?: string | null | undefined;
};

export async function makeKey(
  db: Db,
  { orgId, label, scopes, test = false, strict = test, stream: given }: WantedKey,
  now: number,
): Promise<MadeKey> {
  const stream = await requireStreamName(db, orgId, given);
  const { key, hash, hint } = newKey({ isTest: test });
  const id = await insertKey(db, { orgId, label, scopes, strict, isTest: test, stream, hash, hint }, now);
  return { id, key, label, scopes, strict, test, ...(stream !== null && { stream }) };
}

/** The key, if the caller may manage it: a test key knows test keys only. */
export async function findManagedKey(
  db: Db,
  id: string,
  orgId: string,
  { isTest }: { isTest: boolean },
): Promise<KeyRecord | null> {
  const key = await findKey(db, id, orgId);
  return key && isTest && !key.isTest ? null : key;
}

/** Whether a key that the caller makes is a test key; a test key makes no others. */
export function kindOfNewKey(isTestCaller: boolean, wanted: boolean | undefined): boolean | undefined {
  if (!isTestCaller) return wanted;
  if (wanted !== false) return true;
  throw new Refusal('FORBIDDEN', 'A test key creates test keys only. Leave `test` out, or use a live key.');
}

export interface RotatedKey extends MadeKey {
  /** The old key works until then; null if it was revoked at once. */
  oldKeyUntil: number | null;
}

/** How long the old key works after a rotation, so that an application can change over without a refused request. */
export const defaultOverlapMs = 24 * 60 * 60_000;

/**
 * A new key with the same label, scopes and options. With an overlap of 0, the old one is revoked. Refused if it already has
 * an end.
 */
export async function rotateKey(
  db: Db,
  old: KeyRecord,
  now: number,
  overlapMs = defaultOverlapMs,
): Promise<RotatedKey> {
  const made = await db.transaction(async (trx) =>
    (await end(trx, old, now, overlapMs)) ? makeKey(trx, { ...old, test: old.isTest }, now) : null,
  );
  if (made) return { ...made, oldKeyUntil: overlapMs > 0 ? now + overlapMs : null };
  // Another request may have ended the key after `old` was read.
  throw new Refusal('BAD_REQUEST', endOf((await findKey(db, old.id, null)) ?? old, now));
}

async function end(db: Db, { id, endsAt }: KeyRecord, now: number, overlapMs: number): Promise<boolean> {
  if (endsAt !== null) return false;
  return overlapMs > 0 ? endKeyAt(db, id, now + overlapMs) : revokeKey(db, id, now);
}

/** Why a key cannot be rotated. */
function endOf({ revokedAt, endsAt }: KeyRecord, now: number): string {
  if (revokedAt !== null) return 'The key has been revoked. Create a new key.';
  if (endsAt === null) return 'The key no longer exists. Create a new key.';
  const end = iso(endsAt);
  const state = endsAt > now ? `works until ${end} unless you revoke it` : `ended at ${end}`;
  return `The key has been replaced and ${state}. Use the key that replaced it, or create a new key.`;
}

/** A key as API and command line show it. */
export function keyDocument({
  id,
  label,
  hint,
  scopes,
  strict,
  isTest,
  stream,
  createdAt,
  revokedAt,
  endsAt,
}: KeyRecord) {
  return {
    id,
    label,
    hint,
    scopes,
    strict,
    test: isTest,
    ...(stream !== null && { stream }),
    createdAt: iso(createdAt),
    revokedAt: isoOrNull(revokedAt),
    endsAt: isoOrNull(endsAt),
  };
}
