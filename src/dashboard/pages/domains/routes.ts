/** The list of sender domains, and adding one. domain-page.ts shows one domain. */
import { z } from 'zod';
import { addDomain } from '../../../accounts/domain-registration.ts';
import { listDomains } from '../../../db/accounts/domains-table.ts';
import { toDomain } from '../../../mail/address.ts';
import { checkForm, type Errors, valuesOf } from '../../forms.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
} from '../../page.ts';

export const domainsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/domains': (visit, parts) => list(visit, parts),
    'POST /dashboard/o/:org/domains': add,
  },
};

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const domains = await listDomains(db, visit.org.id);
  const status = Object.keys(errors).length > 0 ? 422 : 200;
  return show('domains/domains', 'Domains', { domains, values: valuesOf(visit.form), errors }, { status });
}

/** People paste URLs and email addresses, too. */
const bare = (text: string) =>
  text
    .trim()
    .replace(/^https?:\/\//i, '')
    .replace(/\/.*$/, '')
    .replace(/^.*@/, '')
    .replace(/\.$/, '');

export const domainName = z
  .string({ error: 'Enter a domain name, such as example.com.' })
  .transform((text, context) => {
    const name = toDomain(bare(text));
    if (name !== null) return name;
    context.addIssue({
      code: 'custom',
      message: 'That is not a domain name. Enter one such as example.com.',
    });
    return z.NEVER;
  });

async function add(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, z.object({ name: domainName }));
  if (!checked.ok) return list(visit, parts, checked.errors);
  const { name } = checked.values;
  const leave = parts.longWorkSlots.dnsChecks.take(visit.context, visit.org.id);
  try {
    const added = await addDomain(
      parts.db,
      { orgId: visit.org.id, name },
      { seal: parts.seal, now: visit.now },
    );
    if ('fault' in added) return list(visit, parts, { name: added.fault });
  } finally {
    leave();
  }
  return redirect(
    `${visit.base}/domains/${name}`,
    `${name} was added. Publish its DNS records to start sending.`,
  );
}
