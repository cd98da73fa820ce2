/**
 * A sender domain: whether its DKIM record has our key, its mail passes DMARC, and the other records that
 * `postern domain show` lists are published. accounts/domains.ts says what each record should be.
 */
import { checkRecords, isUnknown } from '#accounts/check-records.ts';
import { type DnsRecord, type RecordPurpose, recordsFor } from '#accounts/domains.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import type { Dns } from '#operate/doctor/doctor-dns.ts';
import { type Check, type FindingDraft, failure, ok, warning } from '#operate/doctor/finding.ts';
import type { Config } from '#platform/settings/config.ts';
import { checkDmarc } from './dmarc.ts';

type DnsContext = Pick<DoctorContext, 'dns' | 'config'>;

/** One for each key; each organization has its own keys for a domain. */
export function dkimChecks(domain: DomainRecord, { dns, config }: DnsContext): Check[] {
  return recordsOf(domain, config, 'dkim').map((record) => ({
    check: 'DKIM',
    subject: domain.name,
    run: () => checkRecord(dns, record, 'our key', failure),
  }));
}

export function recordChecks(domain: DomainRecord, context: DnsContext): Check[] {
  const { dns, config } = context;
  const subject = domain.name;
  const [record] = recordsOf(domain, config, 'dmarc');
  return [
    { check: 'DMARC', subject, run: () => checkDmarc(domain, record!, context) },
    ...recordsOf(domain, config, ...advised).map((other) => ({
      check: checkNames[other.purpose]!,
      subject,
      run: () => checkRecord(dns, other, 'what it should', warning),
    })),
  ];
}

const checkNames: Partial<Record<RecordPurpose, string>> = {
  return_path: 'return path',
  dmarc_reports: 'DMARC reports',
  tracking: 'tracking links',
  receiving: 'received mail',
};
const advised = Object.keys(checkNames) as RecordPurpose[];

function recordsOf(domain: DomainRecord, config: Config, ...purposes: RecordPurpose[]): DnsRecord[] {
  return recordsFor(domain, config).filter(({ purpose }) => purposes.includes(purpose));
}

async function checkRecord(
  dns: Dns,
  record: DnsRecord,
  asExpected: string,
  otherwise: typeof failure,
): Promise<FindingDraft> {
  // Throws an error that says why if DNS does not answer.
  await dns.records(record.name, record.type);
  const [seen] = await checkRecords([record], dns.resolve);
  const { found, problem, ok: isThere } = seen!;
  if (isUnknown(seen!)) return warning(found.join(), 'try again later');
  const { type, name, value } = record;
  const records = [{ type, name, value }];
  if (isThere && problem !== null) return warning(problem, 'publish this record instead', records);
  if (isThere) return ok(`${name} has ${asExpected}`);
  if (found.length === 0) return otherwise(`no ${type} record at ${name}`, 'publish it', records);
  return otherwise(
    `${name} has a different value: ${found.join(' | ')}. ${problem}`,
    'publish this record instead',
    records,
  );
}
