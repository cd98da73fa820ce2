/**
 * DKIM keys in addition to the one in the domain's row, which signs all its mail.
 *
 *   pending ─► signing ─► retired ─► (deleted)   ed25519: signs in addition to RSA
 *   pending ─► (moved into the domain's row, whose old key becomes retired here)      rsa
 *
 * A retired key has no private key. Its public key must stay in DNS until `keepUntil`, for the mail that it has signed.
 * Lock the domain's row before changing a key's state.
 */
import { newId } from '#platform/base/id.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';

export type DkimAlgorithm = 'rsa' | 'ed25519';

export const dkimKeys = records({
  id: text,
  domainId: text,
  algorithm: value<DkimAlgorithm>(),
  selector: text,
  /** In the form for DNS. */
  publicKey: text,
  /** Sealed. */
  privateKey: orNull(text),
  status: value<'pending' | 'signing' | 'retired'>(),
  createdAt: number,
  checkedAt: orNull(number),
  keepUntil: orNull(number),
});

export type DkimKeyRecord = ReturnType<typeof dkimKeys.read>;

export type NewDkimKey = Pick<
  DkimKeyRecord,
  'domainId' | 'algorithm' | 'selector' | 'publicKey' | 'privateKey'
>;

/** False if a key of its algorithm is already pending. */
export async function insertDkimKey(db: Db, key: NewDkimKey, now: number): Promise<boolean> {
  const rows = await db('dkim_keys')
    .insert(dkimKeys.write({ ...key, id: newId(), status: 'pending', createdAt: now }))
    .onConflict(db.raw("(domain_id, algorithm, status) where status <> 'retired'") as unknown as string)
    .ignore()
    .returning('id');
  return rows.length > 0;
}

export interface WatchedKey extends DkimKeyRecord {
  domainName: string;
}

/** The keys whose next state depends on DNS, page by page. */
export async function listWatchedKeys(db: Db, after: string, limit: number): Promise<WatchedKey[]> {
  const rows = await db('dkim_keys')
    .join('domains', 'domains.id', 'dkim_keys.domain_id')
    .whereRaw("dkim_keys.status <> 'signing'")
    .where('dkim_keys.id', '>', after)
    .orderBy('dkim_keys.id')
    .limit(limit)
    .select('dkim_keys.*', 'domains.name as domain_name');
  return rows.map((row) => ({ ...dkimKeys.read(row), domainName: row.domain_name }));
}

export async function recordKeyCheck(db: Db, id: string, now: number): Promise<void> {
  await db('dkim_keys').where({ id }).update({ checked_at: now });
}

/** Makes the pending key sign, and retires the one before it. False if the key is not pending. */
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
      const old = { selector: domain.dkim_selector, public_key: domain.dkim_public_key };
      await trx('dkim_keys')
        .where({ id })
        .update({ ...old, ...retired(await untilSent(trx, domain.org_id, keepUntil)) });
      await trx('domains')
        .where({ id: domainId })
        .update({
          dkim_selector: key.selector,
          dkim_public_key: key.public_key,
          dkim_private_key: key.private_key,
          status: 'verified',
          checked_at: now,
          verified_at: trx.raw('coalesce(verified_at, ?)', [now]),
        });
      return true;
    }
    await retire(trx, domainId, key.algorithm, await untilSent(trx, domain.org_id, keepUntil));
    await trx('dkim_keys').where({ id }).update({ status: 'signing', checked_at: now });
    return true;
  });
}

/** Scheduled mail is signed when it is accepted, so its key must be found until the last of it has been sent or has expired. */
export async function untilSent(trx: Trx, orgId: string, keepUntil: number): Promise<number> {
  const scheduled = trx('deliveries').where(inStage('scheduled')).where({ org_id: orgId });
  const last = await scheduled.max('expires_at as at').first();
  return Math.max(keepUntil, last?.at ?? 0);
}

/** Scheduled mail of the organization has been moved to expire at `until`. */
export async function keepRetiredKeys(trx: Trx, orgId: string, until: number): Promise<void> {
  const domains = trx('domains').where({ org_id: orgId }).select('id');
  await trx('dkim_keys')
    .where({ status: 'retired' })
    .where('keep_until', '<', until)
    .whereIn('domain_id', domains)
    .update({ keep_until: until });
}

const retired = (keepUntil: number) =>
  dkimKeys.write({ status: 'retired', privateKey: null, keepUntil, checkedAt: null });

/** Ends signing with a key that is not the domain's own. */
export async function retire(
  db: Db | Trx,
  domainId: string,
  algorithm: DkimAlgorithm,
  keepUntil: number,
): Promise<boolean> {
  const signing = db('dkim_keys').where({ domain_id: domainId, algorithm, status: 'signing' });
  return (await signing.update(retired(keepUntil))) > 0;
}

/** Returns how many there were. */
export async function dropPendingKeys(db: Db, domainId: string, algorithm?: DkimAlgorithm): Promise<number> {
  return db('dkim_keys')
    .where({ domain_id: domainId, status: 'pending', ...(algorithm && { algorithm }) })
    .delete();
}

export async function forgetRetiredKey(db: Db, id: string): Promise<void> {
  await db('dkim_keys').where({ id, status: 'retired' }).delete();
}
