/**
 * Sets what is tracked in a domain's mail and the host of its links, for API, command line and dashboard. A host in a domain of
 * another organization is refused: links of this one would lead on from there in the name of that one.
 */
import { type DomainRecord, isHostOfAnother, setDomainTracking } from '#accounts/rows/domains-table.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';

export async function changeTracking(
  db: Db,
  { id, orgId }: Pick<DomainRecord, 'id' | 'orgId'>,
  change: Parameters<typeof setDomainTracking>[2],
): Promise<void> {
  const { host } = change;
  if (host && (await isHostOfAnother(db, orgId, host)))
    throw new Refusal(
      'BAD_REQUEST',
      `${host} cannot be the host of these links. Use a name in a verified domain of this organization.`,
    );
  await setDomainTracking(db, id, change);
}
