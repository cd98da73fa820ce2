/**
 * A sender domain: its DKIM key is the one that we sign with, its mail passes DMARC, and the other records that
 * `postern domain show` lists are there. What each record should be comes from accounts/domains.ts.
 */
import {
  checkRecords,
  type DnsRecord,
  isUnknown,
  type RecordPurpose,
  recordsFor,
} from '../../../accounts/domains.ts';
import type { Config } from '../../../config.ts';
import type { DomainRecord } from '../../../db/accounts/domains-table.ts';
import type { Dns } from '../doctor-dns.ts';
import { type Check, type FindingDraft, failure, ok, warning } from '../finding.ts';
import { checkDmarc } from './dmarc.ts';

interface DomainParts {
  dns: Dns;
  config: Config;
}

/** One for each key; an organization has keys of its own. */
export function dkimTasks(domain: DomainRecord, { dns, config }: DomainParts): Check[] {
  return recordsOf(domain, config, 'dkim').map((record) => ({
    check: 'DKIM',
    subject: domain.name,
    look: () => lookUp(dns, record, 'our key', failure),
  }));
}

/** SPF and blocklists apart, which are about addresses and names as well. */
export function recordTasks(domain: DomainRecord, { dns, config }: DomainParts): Check[] {
  const subject = domain.name;
  const [record] = recordsOf(domain, config, 'dmarc');
  return [
    { check: 'DMARC', subject, look: () => checkDmarc(subject, { dns, config, record: record! }) },
    ...recordsOf(domain, config, 'dmarc_reports', 'tracking').map((other) => ({
      check: other.purpose === 'tracking' ? 'tracking links' : 'DMARC reports',
      subject,
      look: () => lookUp(dns, other, 'what it should', warning),
    })),
  ];
}

function recordsOf(domain: DomainRecord, config: Config, ...purposes: RecordPurpose[]): DnsRecord[] {
  return recordsFor(domain, config).filter(({ purpose }) => purposes.includes(purpose));
}

async function lookUp(
  dns: Dns,
  record: DnsRecord,
  asExpected: string,
  otherwise: typeof failure | typeof warning,
): Promise<FindingDraft> {
  // Says more than a look that failed would.
  await dns.records(record.name, record.type);
  const [seen] = await checkRecords([record], dns.resolve);
  const { found, ok: isThere } = seen!;
  if (isThere) return ok(`${record.name} has ${asExpected}`);
  if (isUnknown(seen!)) return warning(found.join(), 'try again later');
  const { type, name, value } = record;
  if (found.length === 0)
    return otherwise(`no ${type} record at ${name}`, 'publish it', [{ type, name, value }]);
  return otherwise(`${name} has a different value: ${found.join(' | ')}`, 'publish this record instead', [
    { type, name, value },
  ]);
}
