/**
 * One sender domain: its DNS records beside what DNS has, what its mail counts and demands, the reports on it. The page comes
 * without the look at DNS, which may take seconds: that is a part of it, asked for by the browser.
 */
import { z } from 'zod';
import { verifyDomain } from '../../../accounts/domain-registration.ts';
import {
  type CheckedRecord,
  checkRecords,
  type DnsRecord,
  demandedTls,
  dkimKeys,
  recordsFor,
  tlsFloors,
} from '../../../accounts/domains.ts';
import {
  type DomainRecord,
  deleteDomain,
  findDomain,
  setDomainTls,
  setDomainTracking,
} from '../../../db/accounts/domains-table.ts';
import { listReports } from '../../../db/bounces/domain-reports-table.ts';
import { toDomain } from '../../../mail/address.ts';
import { checkbox, checkForm, type Errors } from '../../forms.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  part,
  redirect,
  show,
} from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { names, verdictOn } from './domain-words.ts';
import { domainName } from './routes.ts';

export const domainPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/domains/:name': async (visit, parts) =>
      page(visit, parts, await domainIn(visit, parts)),
    'GET /dashboard/o/:org/domains/:name/records': showRecords,
    'POST /dashboard/o/:org/domains/:name/check': check,
    'POST /dashboard/o/:org/domains/:name/tracking': setTracking,
    'POST /dashboard/o/:org/domains/:name/tls': setTls,
    'POST /dashboard/o/:org/domains/:name/remove': remove,
  },
};

interface Shown {
  errors?: Errors;
  /** As DNS has them; where it was not asked, without what is found. */
  records?: CheckedRecord[];
  values?: Record<string, unknown>;
}

const maxReports = 20;

async function page(
  { base, form, org }: OrgVisit,
  { db, names: known }: PageParts,
  domain: DomainRecord,
  { errors = {}, records, values }: Shown = {},
): Promise<PageAnswer> {
  const reports = await listReports(db, { orgId: org.id, domain: domain.name }, maxReports);
  const data = {
    ...recordsData(base, domain, records ?? recordsFor(domain, known)),
    effectiveTls: demandedTls(domain),
    keys: dkimKeys(domain),
    dmarc: reports.flatMap(({ report }) => (report.kind === 'dmarc' ? [report] : [])),
    tls: reports.flatMap(({ report }) => (report.kind === 'tls' ? [report] : [])),
    values: values ?? {
      opens: domain.openTracking,
      clicks: domain.clickTracking,
      host: domain.trackingHost ?? '',
    },
    typed: form.get('typed') ?? '',
    errors,
  };
  const status = Object.keys(errors).length > 0 ? 422 : 200;
  return show('domains/domain', domain.name, data, { status });
}

/** For the part of the page that shows the records, too. */
function recordsData(base: string, domain: DomainRecord, records: (DnsRecord | CheckedRecord)[]) {
  return {
    domain,
    url: `${base}/domains/${domain.name}`,
    isChecked: records.some((record) => 'ok' in record),
    isFound: records.every((record) => !record.required || ('ok' in record && record.ok)),
    records: records.map((record) => ({
      ...record,
      title: names[record.purpose],
      verdict: 'ok' in record ? verdictOn(record) : null,
    })),
  };
}

/** A look that changes nothing. */
async function showRecords(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  const records = await withDnsSlot(visit, parts, () =>
    checkRecords(recordsFor(domain, parts.names), parts.resolve),
  );
  return part('domains/records', recordsData(visit.base, domain, records));
}

async function check(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { db, names: known, resolve, keepKeysMs: keepMs } = parts;
  const before = await domainIn(visit, parts);
  const { records } = await withDnsSlot(visit, parts, () =>
    verifyDomain(db, before, { names: known, resolve, now: visit.now, keepMs }),
  );
  const domain = await domainIn(visit, parts);
  const isPart = visit.context.get('hx-request') === 'true';
  if (isPart) return part('domains/records', recordsData(visit.base, domain, records));
  return page(visit, parts, domain, { records });
}

export async function withDnsSlot<Seen>(
  { context, org }: OrgVisit,
  { longWorkSlots }: PageParts,
  work: () => Promise<Seen>,
) {
  const leave = longWorkSlots.dnsChecks.take(context, org.id);
  try {
    return await work();
  } finally {
    leave();
  }
}

const trackingFields = z.object({
  opens: checkbox,
  clicks: checkbox,
  host: z
    .union([
      z
        .string()
        .regex(/^\s*$/)
        .transform(() => null),
      domainName,
    ])
    .default(null),
});

async function setTracking(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  const given = checkForm(visit.form, trackingFields);
  if (!given.ok) {
    const { form } = visit;
    const values = { opens: form.has('opens'), clicks: form.has('clicks'), host: form.get('host') };
    const errors = { host: 'That is no host name; one such as links.example.com is, or none.' };
    return page(visit, parts, domain, { errors, values });
  }
  await setDomainTracking(parts.db, domain.id, given.values);
  const isNew = given.values.host !== null && given.values.host !== domain.trackingHost;
  const also = isNew ? ' Publish the record of its tracking links, below.' : '';
  return redirect(
    `${visit.base}/domains/${domain.name}`,
    `What mail from ${domain.name} counts is changed.${also}`,
  );
}

async function setTls(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  const given = checkForm(
    visit.form,
    z.object({ tls: z.enum(tlsFloors, { error: 'Choose one of the three.' }) }),
  );
  if (!given.ok) return page(visit, parts, domain, { errors: given.errors });
  await setDomainTls(parts.db, domain.id, given.values.tls);
  return redirect(
    `${visit.base}/domains/${domain.name}`,
    `What mail from ${domain.name} demands of connections is changed.`,
  );
}

/** The name is typed, so that nobody removes another one than is meant. */
async function remove(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  if (toDomain((visit.form.get('typed') ?? '').trim()) !== domain.name)
    return page(visit, parts, domain, {
      errors: { typed: `Nothing was removed: type ${domain.name} to remove it.` },
    });
  await deleteDomain(parts.db, domain.id);
  return redirect(
    `${visit.base}/domains`,
    `${domain.name} is removed, and its key with it: nothing is sent from it any more.`,
  );
}

/** Of this organization; another's is not there. */
export async function domainIn({ context, org }: OrgVisit, { db }: PageParts): Promise<DomainRecord> {
  const name = toDomain((context.params as { name: string }).name);
  const domain = name === null ? null : await findDomain(db, org.id, name);
  if (!domain) throw notFound('domain');
  return domain;
}
