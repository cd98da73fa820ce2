/**
 * One sender domain: its DNS records and what DNS has, tracking and TLS settings, reports. The DNS check may take seconds, so
 * the page is sent without it and the browser requests the records as a part of the page.
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
  /** Checked against DNS; absent if DNS was not asked. */
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

/** Shared with the records part of the page. */
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

/** Checks the records without changing the domain's status. */
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
  const checked = checkForm(visit.form, trackingFields);
  if (!checked.ok) {
    const { form } = visit;
    const values = { opens: form.has('opens'), clicks: form.has('clicks'), host: form.get('host') };
    const errors = { host: 'Enter a host name, such as links.example.com, or leave this empty.' };
    return page(visit, parts, domain, { errors, values });
  }
  await setDomainTracking(parts.db, domain.id, checked.values);
  const isNew = checked.values.host !== null && checked.values.host !== domain.trackingHost;
  const also = isNew ? ' Publish the tracking record shown below.' : '';
  return redirect(
    `${visit.base}/domains/${domain.name}`,
    `The tracking settings of ${domain.name} were saved.${also}`,
  );
}

async function setTls(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  const checked = checkForm(
    visit.form,
    z.object({ tls: z.enum(tlsFloors, { error: 'Choose one of the three options.' }) }),
  );
  if (!checked.ok) return page(visit, parts, domain, { errors: checked.errors });
  await setDomainTls(parts.db, domain.id, checked.values.tls);
  return redirect(
    `${visit.base}/domains/${domain.name}`,
    `The encryption settings of ${domain.name} were saved.`,
  );
}

/** The name must be typed, so that nobody removes the wrong domain by mistake. */
async function remove(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  if (toDomain((visit.form.get('typed') ?? '').trim()) !== domain.name)
    return page(visit, parts, domain, {
      errors: { typed: `The domain was not removed. Type ${domain.name} to confirm.` },
    });
  await deleteDomain(parts.db, domain.id);
  return redirect(
    `${visit.base}/domains`,
    `${domain.name} and its DKIM keys were removed. Sends from it are refused.`,
  );
}

/** Another organization's domain is not found. */
export async function domainIn({ context, org }: OrgVisit, { db }: PageParts): Promise<DomainRecord> {
  const name = toDomain((context.params as { name: string }).name);
  const domain = name === null ? null : await findDomain(db, org.id, name);
  if (!domain) throw notFound('domain');
  return domain;
}
