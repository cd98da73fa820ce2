/**
 * Addresses that an organization does not write to any more. `addressKey` is what addresses are compared by. Whatever
 * changes the list makes an event of the organization's in the same transaction.
 */

import { newId } from '../../base/id.ts';
import { compareKey } from '../../mail/address.ts';
import { insertRows } from '../engine/insert-rows.ts';
import { jsonRows, query } from '../engine/json-rows.ts';
import type { Db, Trx } from '../engine/open.ts';
import { lastIdOf } from '../events/retention.ts';

export interface Suppression {
  address: string;
  reason: string;
  createdAt: number;
}

export interface SuppressionRecord extends Suppression {
  id: string;
  addressKey: string;
}

export interface NewSuppression {
  orgId: string;
  address: string;
  addressKey: string;
  reason: string;
  /** The email whose bounce it follows. */
  emailId?: string;
}

export function suppressionOf(orgId: string, address: string, reason: string): NewSuppression {
  return { orgId, address, addressKey: compareKey(address), reason };
}

/** False where the address was on the list before; its first reason stays. */
export async function addSuppression(db: Db, suppression: NewSuppression, now: number): Promise<boolean> {
  return (await addSuppressions(db, [suppression], now)) > 0;
}

/** SQLite compiles several rows to a compound select, of which it takes 500. */
const rowsAStatement = 400;

/**
 * How many were not on the list before. They are committed in parts, so that others get to write in between; what breaks
 * off between two can be given again.
 */
export async function addSuppressions(
  db: Db,
  list: NewSuppression[],
  now: number,
  signal?: AbortSignal,
): Promise<number> {
  let added = 0;
  for (let start = 0; start < list.length; start += rowsAStatement) {
    signal?.throwIfAborted();
    added += await db.transaction((trx) => suppress(trx, list.slice(start, start + rowsAStatement), now));
  }
  return added;
}

/** At most `rowsAStatement` of them. Sorted, so that two transactions never wait for each other in a circle. */
export async function suppress(trx: Trx, list: NewSuppression[], now: number): Promise<number> {
  if (list.length === 0) return 0;
  const keyOf = ({ orgId, addressKey }: NewSuppression) => suppressionKey(orgId, addressKey);
  const byKey = new Map([...list].reverse().map((one) => [keyOf(one), one]));
  const rows = await trx('suppressions')
    .insert([...byKey.keys()].sort().map((key) => rowOf(byKey.get(key)!, now)))
    .onConflict(['org_id', 'address_key'])
    .ignore()
    .returning(['org_id', 'address_key']);
  const added = rows.map((row) => byKey.get(suppressionKey(row.org_id, row.address_key))!);
  const events = added.map(({ orgId, address, reason, emailId = null }) =>
    eventRow(orgId, 'suppression.added', { address, reason, emailId }, now),
  );
  await insertRows(trx, 'events', events);
  return added.length;
}

function rowOf({ orgId, address, addressKey, reason }: NewSuppression, now: number): object {
  return { id: newId(), org_id: orgId, address, address_key: addressKey, reason, created_at: now };
}

type Change = 'suppression.added' | 'suppression.removed';

/** No email's: it is the list that changed, and an email's own events tell of its delivery alone. */
function eventRow(orgId: string, type: Change, data: object, at: number): object {
  const none = { email_id: null, recipient: null };
  return { id: newId(), org_id: orgId, ...none, type, at, data: JSON.stringify(data) };
}

/** False where the address was not on the list. */
export async function removeSuppression(
  db: Db,
  orgId: string,
  addressKey: string,
  now: number,
): Promise<boolean> {
  return db.transaction(async (trx) => {
    const row = await trx('suppressions')
      .where({ org_id: orgId, address_key: addressKey })
      .forUpdate()
      .first();
    if (!row) return false;
    await trx('suppressions').where({ id: row.id }).delete();
    const { address, reason } = row;
    await trx('events').insert(eventRow(orgId, 'suppression.removed', { address, reason }, now));
    return true;
  });
}

export async function findSuppression(
  db: Db,
  orgId: string,
  addressKey: string,
): Promise<SuppressionRecord | null> {
  const row = await db('suppressions').where({ org_id: orgId, address_key: addressKey }).first();
  return row ? recordFrom(row) : null;
}

export async function findSuppressionById(
  db: Db,
  orgId: string,
  id: string,
): Promise<SuppressionRecord | null> {
  const row = await db('suppressions').where({ id, org_id: orgId }).first();
  return row ? recordFrom(row) : null;
}

/** The event of a suppression is written after it in the same transaction, which is short. */
const maxApartMs = 10_000;

/** The email whose bounce or complaint it followed; null where none did, or its event is forgotten. */
export async function causeOf(
  db: Db,
  orgId: string,
  { id, address }: SuppressionRecord,
): Promise<string | null> {
  const madeAt = Number.parseInt(id.replace('-', '').slice(0, 12), 16);
  const rows = await db('events')
    .where('id', '>', id)
    .where('id', '<=', lastIdOf(madeAt + maxApartMs))
    .where({ org_id: orgId, type: 'suppression.added' satisfies Change })
    .orderBy('id')
    .select('data');
  const data = rows.map((row) => JSON.parse(row.data)).find((one) => one.address === address);
  return data?.emailId ?? null;
}

export async function listSuppressions(db: Db, orgId: string): Promise<Suppression[]> {
  return (await db('suppressions').where({ org_id: orgId }).orderBy('address_key')).map(fromRow);
}

/** In the order of their keys, those after the key `after`. */
export async function pageOfSuppressions(
  db: Db,
  { orgId, after, limit }: { orgId: string; after: string | null; limit: number },
): Promise<SuppressionRecord[]> {
  const rows = db('suppressions').where({ org_id: orgId }).orderBy('address_key').limit(limit);
  if (after !== null) rows.where('address_key', '>', after);
  return (await rows).map(recordFrom);
}

export interface SuppressionSearch {
  orgId: string;
  /** What is somewhere in their keys; null: all. */
  part: string | null;
  after: string | null;
  limit: number;
}

/** So many are gone through for a request, and so many by one statement, between which others have their turn. */
const maxScanned = 5000;
const maxAtOnce = 500;

/** `next`: the key to go on after; null: that was all. */
export async function searchSuppressions(
  db: Db,
  { orgId, part, after, limit }: SuppressionSearch,
): Promise<{ found: SuppressionRecord[]; next: string | null }> {
  const found: SuppressionRecord[] = [];
  let place = after;
  for (let scanned = 0; scanned < maxScanned; scanned += maxAtOnce) {
    const page = await pageOfSuppressions(db, { orgId, after: place, limit: maxAtOnce });
    for (const one of page) {
      if (found.length === limit) return { found, next: found.at(-1)!.addressKey };
      if (part === null || one.addressKey.includes(part)) found.push(one);
    }
    if (page.length < maxAtOnce) return { found, next: null };
    place = page.at(-1)!.addressKey;
  }
  return { found, next: place };
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function fromRow(row: any): Suppression {
  return { address: row.address, reason: row.reason, createdAt: row.created_at };
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function recordFrom(row: any): SuppressionRecord {
  return { ...fromRow(row), id: row.id, addressKey: row.address_key };
}

/** Which of these addresses are suppressed, each pair as `suppressionKey` writes it; one query for all. */
export async function suppressedAmong(
  db: Db,
  pairs: { orgId: string; addressKey: string }[],
): Promise<Set<string>> {
  const { from, column } = jsonRows(db, { org_id: 'uuid', address_key: 'text' });
  const rows = await query<{ org_id: string; address_key: string }>(
    db,
    `select kept.org_id, kept.address_key from ${from} cross join suppressions as kept
     where kept.org_id = ${column('org_id')} and kept.address_key = ${column('address_key')}`,
    [JSON.stringify(pairs.map(({ orgId, addressKey }) => ({ org_id: orgId, address_key: addressKey })))],
  );
  return new Set(rows.map((row) => suppressionKey(row.org_id, row.address_key)));
}

export function suppressionKey(orgId: string, addressKey: string): string {
  return `${orgId} ${addressKey}`;
}
