/**
 * Whether a report may go where the domain's DNS wants it: the domain's owner is a stranger, and must not make us write to others.
 * A report by mail goes to the domain itself, to one above it with the same owner, or to one that several owners' domains name, as
 * services that read reports are. By https it may go anywhere: nothing is shown to people there.
 */

import { noteWanted, type OutgoingTlsReport } from '#operate/tls-reports/rows/tls-report-limits.ts';
import type { DueReport } from '#operate/tls-reports/rows/tls-results.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';
import { organizationalDomain } from '#platform/values/organizational-domain.ts';
import type { ReportAddress } from './report-addresses.ts';

/** The report as its limits count it. */
export function countedReport({ day, domain }: DueReport, address: ReportAddress): OutgoingTlsReport {
  const about = organizationalDomain(domain);
  if (address.kind === 'mail') {
    const toDomain = organizationalDomain(domainOf(address.address)!);
    return { day, about, to: compareKey(address.address), toDomain };
  }
  const { origin, pathname, hostname } = new URL(address.url);
  return { day, about, to: origin + pathname, toDomain: organizationalDomain(hostname) };
}

/** 'not yet': until another domain names the address's. */
export async function mayReport(
  db: Db,
  domain: string,
  address: ReportAddress,
  now: number,
): Promise<'yes' | 'not yet'> {
  if (address.kind === 'https') return 'yes';
  const to = domainOf(address.address)!;
  const about = organizationalDomain(domain);
  const isAbove = domain === to || (domain.endsWith(`.${to}`) && organizationalDomain(to) === about);
  if (isAbove) return 'yes';
  return (await noteWanted(db, { about, domain: to }, now)) > 1 ? 'yes' : 'not yet';
}
