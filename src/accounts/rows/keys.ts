/** API keys. Only the SHA-256 of a key is stored, never the key. */

import type { RequestLimits } from '#accounts/limits.ts';
import { newId } from '#platform/base/id.ts';
import { jsonRows, query } from '#platform/database/engine/json-rows.ts';
import { type Neighbors, readNeighbors } from '#platform/database/engine/neighbors.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { flag, json, number, orNull, records, text } from '#platform/database/engine/records.ts';
import { type Pause, pauseOf } from './organizations.ts';

const keys = records({
  id: text,
  orgId: text,
  label: text,
  hash: text,
  /** The key's first characters, to tell keys apart in a list. */
  hint: text,
  scopes: json<string[]>(),
  /** A send with unknown members is refused. */
  strict: flag,
  /** Its mail is test mail. */
  isTest: flag,
  /** Of mail that names none; null: `transactional` (platform/values/stream.ts). */
  stream: orNull(text),
  createdAt: number,
  revokedAt: orNull(number),
  /** To the minute; null: never. */
  usedAt: orNull(number),
  /** Set when the key is rotated: it is valid until then. */
  endsAt: orNull(number),
});

export type KeyRecord = ReturnType<typeof keys.read>;

export type NewKey = Pick<KeyRecord, 'orgId' | 'label' | 'hash' | 'hint' | 'scopes'> & {
  strict?: boolean;
  isTest?: boolean;
  stream?: string | null;
};

export async function insertKey(db: Db, key: NewKey, now: number): Promise<string> {
  const id = newId();
  await db('api_keys').insert(keys.write({ ...key, id, createdAt: now }));
  return id;
}

/** A key, and the columns of its organization that a request needs. */
export type KeyInUse = KeyRecord & {
  limits: RequestLimits;
  pause: Pause | null;
  /** The organization has streams. */
  hasStreams?: boolean;
};

export async function findKeyByHash(db: Db, hash: string): Promise<KeyInUse | null> {
  const row = await db('api_keys')
    .join('organizations', 'organizations.id', 'api_keys.org_id')
    .where({ hash })
    .select('api_keys.*', 'requests_per_second', 'requests_per_day', 'paused_at', 'paused_reason')
    .select(
      db.raw(
        'exists (select 1 from streams where streams.org_id = cast(api_keys.org_id as text)) as has_streams',
      ),
    )
    .first();
  if (!row) return null;
  const limits = { perSecond: row.requests_per_second, perDay: row.requests_per_day };
  return { ...keys.read(row), limits, pause: pauseOf(row), hasStreams: Boolean(row.has_streams) };
}

/** `orgId` null: a key of any organization. */
export async function findKey(db: Db, id: string, orgId: string | null): Promise<KeyRecord | null> {
  const row = await db('api_keys')
    .where(orgId === null ? { id } : { id, org_id: orgId })
    .first();
  return row ? keys.read(row) : null;
}

/** Lists keys, the oldest first; without a page, all. */
export async function listKeys(
  db: Db,
  orgId: string,
  page?: Neighbors,
  onlyTest = false,
): Promise<KeyRecord[]> {
  const rows = db('api_keys').where({ org_id: orgId, ...(onlyTest && { is_test: true }) });
  const found = await (page ? readNeighbors(rows, ['id', 'asc'], page) : rows.orderBy('id'));
  return found.map(keys.read);
}

/** Revokes a key immediately. False if it does not exist, or has already been revoked. */
export async function revokeKey(db: Db, id: string, now: number): Promise<boolean> {
  return (await db('api_keys').where({ id }).whereNull('revoked_at').update({ revoked_at: now })) > 0;
}

/** Never sets `used_at` to an earlier time. */
export async function noteKeysUsed(db: Db, uses: { id: string; at: number }[]): Promise<void> {
  const { from, column } = jsonRows(db, { id: 'uuid', at: 'bigint' });
  await query(
    db,
    `update api_keys set used_at = ${column('at')} from ${from}
     where api_keys.id = ${column('id')} and (used_at is null or used_at < ${column('at')})`,
    [JSON.stringify(uses)],
  );
}

/** The labels of keys whose mail is in a stream. */
export async function keysOfStream(db: Db, orgId: string, stream: string): Promise<string[]> {
  return db('api_keys')
    .where({ org_id: orgId, stream, revoked_at: null })
    .orderBy('id')
    .limit(10)
    .pluck('label');
}

/** Makes the key valid until `at`. False if it does not exist, or already has an end. */
export async function endKeyAt(db: Db, id: string, at: number): Promise<boolean> {
  const rows = db('api_keys').where({ id }).whereNull('revoked_at').whereNull('ends_at');
  return (await rows.update({ ends_at: at })) > 0;
}
