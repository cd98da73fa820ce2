/** Organizations as they are made, from wherever. */
import { grant, setQuota } from '../db/credits.ts';
import type { Db } from '../db/open.ts';
import { findOrganization, insertOrganization, type Organization } from '../db/organizations.ts';

export interface NewOrganization {
  name: string;
  /** Credits a month; null: without limit, as where neither is given. */
  quota?: number | null;
  wallet?: number;
}

export async function makeOrganization(
  db: Db,
  { name, quota, wallet = 0 }: NewOrganization,
  now: number,
): Promise<Organization> {
  const usual = wallet === 0 ? null : 0;
  const limit = quota === undefined ? usual : quota;
  return db.transaction(async (trx) => {
    const id = await insertOrganization(trx, name, now);
    if (limit !== 0) await setQuota(trx, id, limit, now);
    if (wallet) await grant(trx, id, wallet, now);
    return (await findOrganization(trx, id))!;
  });
}
