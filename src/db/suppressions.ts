/** Addresses that an organization does not write to any more. `addressKey` is what addresses are compared by. */
import { v7 as uuid } from 'uuid';
import type { Db } from './open.ts';

export interface Suppression {
  address: string;
  reason: string;
  createdAt: number;
}

export interface NewSuppression {
  orgId: string;
  address: string;
  addressKey: string;
  reason: string;
}

/** False where the address was on the list before; its first reason stays. */
export async function addSuppression(db: Db, suppression: NewSuppression, now: number): Promise<boolean> {
  return (await addSuppressions(db, [suppression], now)) > 0;
}

/** SQLite compiles several rows to a compound select, of which it takes 500. */
const rowsAStatement = 400;

/** How many were not on the list before. Each statement commits for itself, so that others get to write in between. */
export async function addSuppressions(db: Db, list: NewSuppression[], now: number): Promise<number> {
  let added = 0;
  for (let start = 0; start < list.length; start += rowsAStatement) {
    const rows = await db('suppressions')
      .insert(list.slice(start, start + rowsAStatement).map((one) => rowOf(one, now)))
      .onConflict(['org_id', 'address_key'])
      .ignore()
      .returning('id');
    added += rows.length;
  }
  return added;
}

function rowOf({ orgId, address, addressKey, reason }: NewSuppression, now: number): object {
  return { id: uuid(), org_id: orgId, address, address_key: addressKey, reason, created_at: now };
}

export async function removeSuppression(db: Db, orgId: string, addressKey: string): Promise<boolean> {
  return (await db('suppressions').where({ org_id: orgId, address_key: addressKey }).delete()) > 0;
}

export async function listSuppressions(db: Db, orgId: string): Promise<Suppression[]> {
  const rows = await db('suppressions').where({ org_id: orgId }).orderBy('address_key');
  return rows.map((row) => ({ address: row.address, reason: row.reason, createdAt: row.created_at }));
}

/** Which of these addresses are suppressed, each pair as `suppressionKey` writes it; one query for all. */
export async function suppressedAmong(
  db: Db,
  pairs: { orgId: string; addressKey: string }[],
): Promise<Set<string>> {
  const rows = await db('suppressions')
    .whereIn('address_key', [...new Set(pairs.map((pair) => pair.addressKey))])
    .whereIn('org_id', [...new Set(pairs.map((pair) => pair.orgId))])
    .select('org_id', 'address_key');
  return new Set(rows.map((row) => suppressionKey(row.org_id, row.address_key)));
}

export function suppressionKey(orgId: string, addressKey: string): string {
  return `${orgId} ${addressKey}`;
}
