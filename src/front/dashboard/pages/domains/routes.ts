/** The list of sender domains, and adding one. domain-page.ts shows one domain. */
import { z } from 'zod';
import { registerDomain } from '#accounts/domain-registration.ts';
import { listDomains } from '#accounts/rows/domains-table.ts';
import { asProblem, inSlot, showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors, problemWith } from '#front/dashboard/forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect } from '#front/dashboard/page.ts';
import { toDomain } from '#platform/values/address.ts';
import { trimBlanks } from '#platform/values/hidden-characters.ts';

/** People paste URLs and email addresses, too. */
const bare = (text: string) =>
  trimBlanks(text)
    .replace(/^https?:\/\//i, '')
    .split('/', 1)[0]!
    .replace(/^.*@/, '')
    .replace(/\.$/, '');

export const domainName = z
  .string({ error: 'Enter a domain name, such as example.com.' })
  .transform((text, context) => {
    const name = toDomain(bare(text));
    if (name !== null) return name;
    const problem = 'That is not a domain name. Enter one such as example.com.';
    context.addIssue({ code: 'custom', message: problemWith(text, problem) });
    return z.NEVER;
  });

export const domainsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/domains': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/domains'(visit, parts) {
      const { form, org, base, now } = visit;
      const { db, seal, longWorkSlots } = parts;
      const checked = checkForm(form, z.object({ name: domainName }));
      if (!checked.ok) return list(visit, parts, checked.errors);
      const { name } = checked.values;
      const added = await inSlot(longWorkSlots.dnsChecks, visit, () =>
        registerDomain(db, { orgId: org.id, name }, { seal, now, requestedBy: 'owner' }).catch(asProblem),
      );
      if ('problem' in added) return list(visit, parts, { name: added.problem });
      return redirect(`${base}/domains/${name}`, `${name} was added.`);
    },
  },
};

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const domains = await listDomains(db, visit.org.id);
  return showForm('domains/domains', 'Domains', visit, { domains }, errors);
}
