/** The steps that are left until the first mail can be sent. */

import { firstDomain, firstOrganization, hasAcceptedMail } from '#accounts/rows/set-up-progress.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { shellWord } from '#platform/settings/shell-word.ts';

/** The command to run next; null once a domain is or was verified, or mail was accepted. */
export async function nextSetUpStep(db: Db): Promise<string | null> {
  const domain = await firstDomain(db);
  if (domain?.wasVerified || (await hasAcceptedMail(db))) return null;
  const of = (org: string) => `--org ${shellWord(org)}`;
  if (domain !== null) return `postern domain verify ${domain.name} ${of(domain.organization)}`;
  const organization = await firstOrganization(db);
  return organization === null
    ? 'postern org create --name NAME'
    : `postern domain add DOMAIN ${of(organization)}`;
}
