/**
 * DKIM keys beside the one in the domain's row, which signs all its mail.
 *
 *   pending ─► signing ─► retired ─► (gone)      ed25519: signs beside RSA
 *   pending ─► (into the domain's row, whose key becomes a retired one here)      rsa
 *
 * What is retired has no private key any more. Its public one must stay in DNS until `keepUntil`, for the mail that it
 * has signed. Whoever moves a key locks the domain's row first.
 */
import { newId } from '../../base/id.ts';
import type { Db, Trx } from '../engine/open.ts';

export type DkimAlgorithm = 'rsa' | 'ed25519';

export interface DkimKeyRecord {
  id: string;
  domainId: string;
  algorithm: DkimAlgorithm;
  selector: string;
  /** As DNS carries it. */
  publicKey: string;
  /** Sealed. */
  privateKey: string | null;
  status: 'pending' | 'signing' | 'retired';
  createdAt: number;
  checkedAt: number | null;
  keepUntil: number | null;
}

export type NewDkimKey = Pick<
  DkimKeyRecord,
  'domainId' | 'algorithm' | 'selector' | 'publicKey' | 'privateKey'
>;

/** False where one of its algorithm is pending already. */
export async function insertDkimKey(db: Db, key: NewDkimKey, now: number): Promise<boolean> {
  const rows = await db('dkim_keys')
    .insert({
      ...{ id: newId(), domain_id: key.domainId, algorithm: key.algorithm, selector: key.selector },
      ...{ public_key: key.publicKey, private_key: key.privateKey, status: 'pending', created_at: now },
    })
    .onConflict(db.raw("(domain_id, algorithm, status) where status <> 'retired'") as unknown as string)
    .ignore()
    .returning('id');
  return rows.length > 0;
}

export interface WatchedKey extends DkimKeyRecord {
  domainName: string;
}

/** Those of which DNS decides what is next, page by page. */
export async function listWatchedKeys(db: Db, after: string, limit: number): Promise<WatchedKey[]> {
  const rows = await db('dkim_keys')
    .join('domains', 'domains.id', 'dkim_keys.domain_id')
    .whereRaw("dkim_keys.status <> 'signing'")
    .where('dkim_keys.id', '>', after)
    .orderBy('dkim_keys.id')
    .limit(limit)
    .select('dkim_keys.*', 'domains.name as domain_name');
  return rows.map((row) => ({ ...keyFrom(row), domainName: row.domain_name }));
}

export async function touchDkimKey(db: Db, id: string, now: number): Promise<void> {
  await db('dkim_keys').where({ id }).update({ checked_at: now });
}

/** The pending key signs from now on, and the one before it is retired. False where it is not pending any more. */
export async function promoteDkimKey(
  db: Db,
  { id, domainId }: Pick<DkimKeyRecord, 'id' | 'domainId'>,
  { now, keepUntil }: { now: number; keepUntil: number },
): Promise<boolean> {
  return db.transaction(async (trx) => {
    const domain = await trx('domains').where({ id: domainId }).forUpdate().first();
    const key = await trx('dkim_keys').where({ id, status: 'pending' }).first();
    if (!domain || !key) return false;
    if (key.algorithm === 'rsa') {
      await trx('dkim_keys')
        .where({ id })
        .update({
          ...{ selector: domain.dkim_selector, public_key: domain.dkim_public_key, private_key: null },
          ...{ status: 'retired', keep_until: keepUntil, checked_at: null },
        });
      await trx('domains')
        .where({ id: domainId })
        .update({
          ...{ dkim_selector: key.selector, dkim_public_key: key.public_key },
          ...{ dkim_private_key: key.private_key, status: 'verified', checked_at: now },
          verified_at: trx.raw('coalesce(verified_at, ?)', [now]),
        });
      return true;
    }
    await retire(trx, domainId, key.algorithm, keepUntil);
    await trx('dkim_keys').where({ id }).update({ status: 'signing', checked_at: now });
    return true;
  });
}

/** Signing with it ends; it is for a key beside the domain's own. */
export async function retire(
  db: Db | Trx,
  domainId: string,
  algorithm: DkimAlgorithm,
  keepUntil: number,
): Promise<boolean> {
  const retired = { status: 'retired', private_key: null, keep_until: keepUntil, checked_at: null };
  return (
    (await db('dkim_keys').where({ domain_id: domainId, algorithm, status: 'signing' }).update(retired)) > 0
  );
}

/** How many there were. */
export async function dropPendingKeys(db: Db, domainId: string, algorithm?: DkimAlgorithm): Promise<number> {
  return db('dkim_keys')
    .where({ domain_id: domainId, status: 'pending', ...(algorithm && { algorithm }) })
    .delete();
}

export async function forgetRetiredKey(db: Db, id: string): Promise<void> {
  await db('dkim_keys').where({ id, status: 'retired' }).delete();
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
export function keyFrom(row: any): DkimKeyRecord {
  return {
    id: row.id,
    domainId: row.domain_id,
    algorithm: row.algorithm,
    selector: row.selector,
    publicKey: row.public_key,
    privateKey: row.private_key,
    status: row.status,
    createdAt: row.created_at,
    checkedAt: row.checked_at,
    keepUntil: row.keep_until,
  };
}
