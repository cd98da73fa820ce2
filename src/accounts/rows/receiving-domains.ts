/**
 * Which organization receives the mail for a domain. Several may have the domain registered, and even verified; the index
 * `domains_receives_unique` has one that receives it and is verified, so that no mail reaches another tenant.
 */
import type { Db } from '#platform/database/engine/open.ts';
import { flag, records, text, value } from '#platform/database/engine/records.ts';

const receivingDomains = records({
  id: text,
  orgId: text,
  name: text,
  status: value<'pending' | 'verified'>(),
  receives: flag,
});

export type ReceivingDomain = ReturnType<typeof receivingDomains.read>;

/** The index domains_receiving_index has only these rows. */
const indexed = 'receives';

/** Whether any organization receives mail. */
export async function hasReceivingDomain(db: Db): Promise<boolean> {
  return (await db('domains').whereRaw(indexed).first('id')) !== undefined;
}

/**
 * The domain that receives the mail for this name (A-label). `pending`: it was verified and its DKIM record is gone, so its mail
 * is to wait at the senders until it is known whose the domain is. Null: no organization receives it.
 */
export async function findReceivingDomain(db: Db, name: string): Promise<ReceivingDomain | null> {
  const rows = await db('domains')
    .whereRaw(indexed)
    .where({ name })
    .where((ever) => ever.where({ status: 'verified' }).orWhereNotNull('failing_since'))
    .orderBy([
      { column: 'status', order: 'desc' },
      { column: 'id', order: 'asc' },
    ])
    .limit(1)
    .select(receivingDomains.columns);
  return rows[0] ? receivingDomains.read(rows[0]) : null;
}

/** Whether another organization receives the mail for the domain. */
export async function isReceivedElsewhere(
  db: Db,
  { id, name }: Pick<ReceivingDomain, 'id' | 'name'>,
): Promise<boolean> {
  const row = await db('domains')
    .where({ name, receives: true, status: 'verified' })
    .whereNot({ id })
    .first('id');
  return row !== undefined;
}

/** Of two organizations that do this at the same time, the index refuses one. */
export async function setDomainReceives(db: Db, id: string, receives: boolean): Promise<void> {
  await db('domains').where({ id }).update({ receives, mx_missing_since: null });
}
