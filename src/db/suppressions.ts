/**
 * Addresses that an organization does not write to any more. `addressKey` is what addresses are compared by. Whatever
 * changes the list makes an event of the organization's in the same transaction.
 */
import { v7 as uuid } from 'uuid';
import { insertRows } from './insert.ts';
import type { Db, Trx } from './open.ts';

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
  /** The email whose bounce it follows. */
  emailId?: string;
}

/** False where the address was on the list before; its first reason stays. */
export async function addSuppression(db: Db, suppression: NewSuppression, now: number): Promise<boolean> {
  return (await addSuppressions(db, [suppression], now)) > 0;
}

/** SQLite compiles several rows to a compound select, of which it takes 500. */
const rowsAStatement = 400;

/** How many were not on the list before. They are committed in parts, so that others get to write in between. */
export async function addSuppressions(db: Db, list: NewSuppression[], now: number): Promise<number> {
  let added = 0;
  for (let start = 0; start < list.length; start += rowsAStatement) {
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
  return { id: uuid(), org_id: orgId, address, address_key: addressKey, reason, created_at: now };
}

type Change = 'suppression.added' | 'suppression.removed';

/** No email's: it is the list that changed, and an email's own events tell of its delivery alone. */
function eventRow(orgId: string, type: Change, data: object, at: number): object {
  const none = { email_id: null, recipient: null };
  return { id: uuid(), org_id: orgId, ...none, type, at, data: JSON.stringify(data) };
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
