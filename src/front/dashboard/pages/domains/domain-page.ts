/**
 * One sender domain: its DNS records and what DNS has, tracking and TLS settings, reports. The DNS check may take seconds, so
 * the page is sent without it and the browser requests the records as a part of the page.
 */
import { z } from 'zod';
import { type CheckedRecord, checkRecords, missingRecords } from '#accounts/check-records.ts';
import { switchReceiving } from '#accounts/domain-receiving.ts';
import { verifyDomain } from '#accounts/domain-registration.ts';
import { changeTracking } from '#accounts/domain-tracking.ts';
import { type DnsRecord, demandedTls, dkimKeys, recordsFor, tlsFloors } from '#accounts/domains.ts';
import { type DomainRecord, deleteDomain, findDomain, setDomainTls } from '#accounts/rows/domains-table.ts';
import { zoneText } from '#accounts/zone-text.ts';
import { asProblem, inSlot, showForm } from '#front/dashboard/form-page.ts';
import { checkbox, checkForm, type Errors, nullable, valuesOf } from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  fragment,
  type OrgVisit,
  type PageParts,
  redirect,
} from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { listReports } from '#mail/returned/rows/domain-reports-table.ts';
import { toDomain } from '#platform/values/address.ts';
import { organizationalDomain } from '#platform/values/organizational-domain.ts';
import { names, verdictOn } from './domain-words.ts';
import { domainName } from './routes.ts';

const trackingFields = z.object({ opens: checkbox, clicks: checkbox, host: nullable(domainName) });
const tlsFields = z.object({ tls: z.enum(tlsFloors, { error: 'Choose one of the three options.' }) });

export const domainPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/domains/:name': async (visit, parts) =>
      page(visit, parts, await domainIn(visit, parts.db)),
    /** Checks the records without changing the domain's status. */
    async 'GET /dashboard/o/:org/domains/:name/records'(visit, parts) {
      const { db, names: known, resolve, longWorkSlots } = parts;
      const domain = await domainIn(visit, db);
      const records = await inSlot(longWorkSlots.dnsChecks, visit, () =>
        checkRecords(recordsFor(domain, known), resolve),
      );
      return fragment('domains/records', recordsData(visit, parts, domain, records));
    },
    async 'POST /dashboard/o/:org/domains/:name/check'(visit, parts) {
      const { db, names: known, resolve, keepKeysMs: keepMs, longWorkSlots, eventSignal } = parts;
      const before = await domainIn(visit, db);
      const { domain, records } = await inSlot(longWorkSlots.dnsChecks, visit, () =>
        verifyDomain(db, before, { names: known, resolve, now: visit.now, keepMs, eventSignal }),
      );
      const isPart = visit.context.get('hx-request') === 'true';
      if (isPart) return fragment('domains/records', recordsData(visit, parts, domain, records));
      return page(visit, parts, domain, { records });
    },
    async 'POST /dashboard/o/:org/domains/:name/tracking'(visit, parts) {
      const { form, base } = visit;
      const domain = await domainIn(visit, parts.db);
      const checked = checkForm(form, trackingFields);
      if (!checked.ok) {
        const values = {
          opens: form.has('opens'),
          clicks: form.has('clicks'),
          host: valuesOf(form).host ?? '',
        };
        const errors = { host: 'Enter a host name, such as links.example.com, or leave this empty.' };
        return page(visit, parts, domain, { errors, values });
      }
      const refused = await changeTracking(parts.db, domain, checked.values).catch(asProblem);
      if (refused)
        return page(visit, parts, domain, {
          errors: { host: refused.problem },
          values: { ...checked.values, host: checked.values.host ?? '' },
        });
      const isNew = checked.values.host !== null && checked.values.host !== domain.trackingHost;
      const also = isNew ? ' Publish the tracking record shown below.' : '';
      const flash = `The tracking settings of ${domain.name} were saved.${also}`;
      return redirect(`${base}/domains/${domain.name}`, flash);
    },
    async 'POST /dashboard/o/:org/domains/:name/tls'(visit, parts) {
      const domain = await domainIn(visit, parts.db);
      const checked = checkForm(visit.form, tlsFields);
      if (!checked.ok) return page(visit, parts, domain, { errors: checked.errors });
      await setDomainTls(parts.db, domain.id, checked.values.tls);
      const flash = `The encryption settings of ${domain.name} were saved.`;
      return redirect(`${visit.base}/domains/${domain.name}`, flash);
    },
    async 'POST /dashboard/o/:org/domains/:name/receive'(visit, parts) {
      const domain = await domainIn(visit, parts.db);
      const receives = visit.form.has('receives');
      const refused = await switchReceiving(parts.db, domain, receives, parts.names).catch(asProblem);
      if (refused) return page(visit, parts, domain, { errors: { receives: refused.problem } });
      const flash = receives
        ? `${domain.name} receives mail as soon as its MX record below is published. Its routes say what becomes of it.`
        : `${domain.name} receives no mail now. Its routes are kept.`;
      return redirect(`${visit.base}/domains/${domain.name}`, flash);
    },
    /** The name must be typed, so that a person cannot remove the wrong domain by mistake. */
    async 'POST /dashboard/o/:org/domains/:name/remove'(visit, parts) {
      const domain = await domainIn(visit, parts.db);
      const { name } = domain;
      if (toDomain((visit.form.get('typed') ?? '').trim()) !== name) {
        const errors = { typed: `The domain was not removed. Type ${name} to confirm.` };
        return page(visit, parts, domain, { errors });
      }
      await deleteDomain(parts.db, domain);
      const flash = `${name} and its DKIM keys were removed. Sends from it are refused.`;
      return redirect(`${visit.base}/domains`, flash);
    },
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
  visit: OrgVisit,
  parts: PageParts,
  domain: DomainRecord,
  { errors = {}, records, values }: Shown = {},
) {
  const reports = await listReports(parts.db, { orgId: visit.org.id, domain: domain.name }, maxReports);
  const data = {
    ...recordsData(visit, parts, domain, records ?? recordsFor(domain, parts.names)),
    effectiveTls: demandedTls(domain),
    keys: dkimKeys(domain),
    dmarc: reports.flatMap(({ report }) => (report.kind === 'dmarc' ? [report] : [])),
    tls: reports.flatMap(({ report }) => (report.kind === 'tls' ? [report] : [])),
    values: values ?? {
      opens: domain.openTracking,
      clicks: domain.clickTracking,
      host: domain.trackingHost ?? '',
    },
    typed: valuesOf(visit.form).typed ?? '',
  };
  const shown = showForm('domains/domain', domain.name, visit, data, errors);
  return { ...shown, scripts: ['live.js'] };
}

/**
 * Shared with the records part of the page. The records below the server's own return path domain are its operator's to publish:
 * others only read of them, and only if they are wrong.
 */
function recordsData(
  { base, user }: OrgVisit,
  { names: { returnPathDomain } }: PageParts,
  domain: DomainRecord,
  records: (DnsRecord | CheckedRecord)[],
) {
  const shown = records.map((record) => ({
    ...record,
    title: names[record.purpose],
    verdict: 'ok' in record ? verdictOn(record) : null,
    ...placeOf(record.name),
  }));
  const isServers = ({ name }: DnsRecord) => `.${name}`.endsWith(`.${returnPathDomain}`);
  const own = shown.filter((record) => !isServers(record));
  const servers = shown.filter(isServers);
  return {
    domain,
    url: `${base}/domains/${domain.name}`,
    isChecked: records.some((record) => 'ok' in record),
    isFound: records.every((record) => !record.required || ('ok' in record && record.ok)),
    isMissing: missingRecords(records.filter((record) => 'ok' in record)).length > 0,
    own,
    servers: user.isOperator ? servers : [],
    serversProblem: servers.some(
      ({ verdict }) => verdict?.badge === 'Missing' || verdict?.badge === 'Different',
    ),
    text: zoneText(user.isOperator ? records : own),
  };
}

/** The name as the forms of most DNS providers take it: without the zone, which is `@` itself. */
function placeOf(name: string): { zone: string; host: string } {
  const zone = organizationalDomain(name);
  return { zone, host: name === zone ? '@' : name.slice(0, -zone.length - 1) };
}

/** Another organization's domain is not found. */
export async function domainIn({ context, org }: OrgVisit, db: PageParts['db']): Promise<DomainRecord> {
  const name = toDomain((context.params as { name: string }).name);
  const domain = name === null ? null : await findDomain(db, org.id, name);
  if (!domain) throw notFound('domain');
  return domain;
}
