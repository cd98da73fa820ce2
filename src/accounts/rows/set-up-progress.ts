/** How far the set-up of this server has come: one row of an index for each step. */

import type { Db } from '#platform/database/engine/open.ts';
import { serverOrgId } from '#platform/values/glossary.ts';
import { realOrganizations } from './organizations.ts';

/** The first domain that is or was verified; if there is none, the last that was added. */
export async function firstDomain(
  db: Db,
): Promise<{ name: string; organization: string; wasVerified: boolean } | null> {
  const domains = () =>
    db('domains')
      .join('organizations', 'organizations.id', 'domains.org_id')
      .select('domains.name', 'organizations.name as organization');
  const verified = await domains()
    .where((either) => either.where('domains.status', 'verified').orWhereNotNull('domains.failing_since'))
    .first();
  if (verified) return { ...verified, wasVerified: true };
  const added = await domains().orderBy('domains.created_at', 'desc').first();
  return added ? { ...added, wasVerified: false } : null;
}

/** Enough to find one that is not, unless mail has only been tried out. */
const maxRead = 1000;

/** Whether mail of a key that is not a test key has been accepted, from a domain that may have been removed since. */
export async function hasAcceptedMail(db: Db): Promise<boolean> {
  const some = db('emails').whereNot({ org_id: serverOrgId }).limit(maxRead).select('is_test');
  return (await db(some.as('some')).where({ is_test: false }).first()) !== undefined;
}

export async function firstOrganization(db: Db): Promise<string | null> {
  const row = await realOrganizations(db).orderBy('created_at').first('name');
  return row?.name ?? null;
}
