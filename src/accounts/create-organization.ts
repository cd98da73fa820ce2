/** Creates organizations, for API, command line and dashboard; the message that a paused organization gets. */

import { grant, setQuota } from '#accounts/rows/credit-ledger.ts';
import {
  findOrganization,
  insertOrganization,
  type Organization,
  type Pause,
} from '#accounts/rows/organizations.ts';
import { iso } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';

export interface NewOrganization {
  name: string;
  /** Credits per month; null is unlimited, which is also the default if `wallet` is 0. */
  quota?: number | null;
  wallet?: number;
}

export async function makeOrganization(
  db: Db,
  { name, quota, wallet = 0 }: NewOrganization,
  now: number,
): Promise<Organization> {
  const fallback = wallet === 0 ? null : 0;
  const limit = quota === undefined ? fallback : quota;
  return db.transaction(async (trx) => {
    const id = await insertOrganization(trx, name, now);
    if (limit !== 0) await setQuota(trx, id, limit, now);
    if (wallet) await grant(trx, id, wallet, now);
    return (await findOrganization(trx, id))!;
  });
}

/** `reason` is written by the operator for the people of the organization. */
export function pausedMessage({ since, reason }: Pause): string {
  return `The organization has been paused since ${iso(since)} by the operator of this service: ${reason}. Ask the operator to resume it.`;
}
