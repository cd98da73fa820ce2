/** API keys as kept: the SHA-256 of the key, never the key. */

import type { RequestLimits } from '../../accounts/limits.ts';
import { newId } from '../../base/id.ts';
import { jsonRows, query } from '../engine/json-rows.ts';
import type { Db } from '../engine/open.ts';
import { type Pause, pauseOf } from './organizations.ts';

export interface KeyRecord {
  id: string;
  orgId: string;
  label: string;
  hash: string;
  /** The key's first characters, to tell keys apart in a list. */
  hint: string;
  scopes: string[];
  createdAt: number;
  revokedAt: number | null;
  /** To the minute; null: never. */
  usedAt: number | null;
  /** It was rotated, and is good until then. */
  endsAt: number | null;
}

export type NewKey = Pick<KeyRecord, 'orgId' | 'label' | 'hash' | 'hint' | 'scopes'>;

export async function insertKey(db: Db, key: NewKey, now: number): Promise<string> {
  const id = newId();
  await db('api_keys').insert({
    id,
    org_id: key.orgId,
    label: key.label,
    hash: key.hash,
    hint: key.hint,
    scopes: JSON.stringify(key.scopes),
    created_at: now,
  });
  return id;
}

/** A key with what a request needs to know of its organization. */
export type KeyInUse = KeyRecord & { limits: RequestLimits; pause: Pause | null };

export async function findKeyByHash(db: Db, hash: string): Promise<KeyInUse | null> {
  const row = await db('api_keys')
    .join('organizations', 'organizations.id', 'api_keys.org_id')
    .where({ hash })
    .select('api_keys.*', 'requests_per_second', 'requests_per_day', 'paused_at', 'paused_reason')
    .first();
  if (!row) return null;
  const limits = { perSecond: row.requests_per_second, perDay: row.requests_per_day };
  return { ...fromRow(row), limits, pause: pauseOf(row) };
}

/** `orgId`: only one of that organization; null: any. */
export async function findKey(db: Db, id: string, orgId: string | null): Promise<KeyRecord | null> {
  const row = await db('api_keys')
    .where(orgId === null ? { id } : { id, org_id: orgId })
    .first();
  return row ? fromRow(row) : null;
}

/** The oldest first; without a page, all. */
export async function listKeys(
  db: Db,
  orgId: string,
  page?: { after: string | undefined; limit: number },
): Promise<KeyRecord[]> {
  const rows = db('api_keys').where({ org_id: orgId }).orderBy('id');
  if (page) rows.limit(page.limit);
  if (page?.after !== undefined) rows.where('id', '>', page.after);
  return (await rows).map(fromRow);
}

/** At once. False where there is no such key, or it was revoked before. */
export async function revokeKey(db: Db, id: string, now: number): Promise<boolean> {
  return (await db('api_keys').where({ id }).whereNull('revoked_at').update({ revoked_at: now })) > 0;
}

/** Never earlier than it was known before. */
export async function noteKeysUsed(db: Db, uses: { id: string; at: number }[]): Promise<void> {
  const { from, column } = jsonRows(db, { id: 'uuid', at: 'bigint' });
  await query(
    db,
    `update api_keys set used_at = ${column('at')} from ${from}
     where api_keys.id = ${column('id')} and (used_at is null or used_at < ${column('at')})`,
    [JSON.stringify(uses)],
  );
}

/** It is good until `at`. False where there is no such key, or its end is set already. */
export async function endKeyAt(db: Db, id: string, at: number): Promise<boolean> {
  const rows = db('api_keys').where({ id }).whereNull('revoked_at').whereNull('ends_at');
  return (await rows.update({ ends_at: at })) > 0;
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function fromRow(row: any): KeyRecord {
  return {
    id: row.id,
    orgId: row.org_id,
    label: row.label,
    hash: row.hash,
    hint: row.hint,
    scopes: JSON.parse(row.scopes),
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
    usedAt: row.used_at,
    endsAt: row.ends_at,
  };
}
