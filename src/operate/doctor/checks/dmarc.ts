/** DMARC (RFC 9989): whether the domain has a record, its own or inherited, and our mail passes it. */
import type { DnsRecord } from '#accounts/domains.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { returnPathInUse } from '#accounts/rows/return-paths.ts';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import { Unanswered } from '#operate/doctor/doctor-dns.ts';
import { type FindingDraft, failure, ok, warning } from '#operate/doctor/finding.ts';
import { evaluateDmarc } from '#platform/vendor/mailauth-spf-dmarc.ts';

type Context = Pick<DoctorContext, 'dns' | 'config'>;

/** `record`: the one to publish if there is none. */
export async function checkDmarc(
  sender: DomainRecord,
  record: DnsRecord,
  { dns, config }: Context,
): Promise<FindingDraft> {
  const domain = sender.name;
  const evaluation = await evaluateDmarc({
    headerFrom: [domain],
    // As in our mail: SPF is that of the return path, and each domain signs for itself.
    spfDomains: [returnPathInUse(sender) ?? config.returnPathDomain],
    dkimDomains: [{ id: 'ours', domain }],
    resolver: dns.resolve,
    strict: true,
  });
  if (evaluation === false)
    return failure(`DMARC cannot be evaluated for ${domain}`, 'register another domain');
  if (evaluation.status.result === 'temperror') {
    // Throws a clearer error if no DNS server answers at all.
    await dns.records(`_dmarc.${domain}`, 'TXT');
    throw new Unanswered(`DNS has no answer for the DMARC record of ${domain}`, 'ESERVFAIL');
  }
  if (evaluation.status.result === 'none') return noValidRecord(dns, record);
  const { spf, dkim } = evaluation.alignment;
  const aligned = [...(dkim?.result ? ['DKIM'] : []), ...(spf?.result ? ['SPF'] : [])];
  return ok(`${evaluation.rr} (at ${evaluation.policyDomain}); aligned by ${aligned.join(' and ')}`);
}

async function noValidRecord(dns: Context['dns'], { type, name, value }: DnsRecord): Promise<FindingDraft> {
  const found = (await dns.records<string[]>(name, 'TXT')).map((strings) => strings.join(''));
  const records = [{ type, name, value }];
  if (found.length === 0) {
    return warning('no DMARC record; the large mailbox providers ask for one', 'publish it', records);
  }
  return warning(
    `${name} does not have exactly one valid DMARC record: ${found.join(' | ')}`,
    'publish this record instead: there must be exactly one, starting with v=DMARC1 and containing a policy',
    records,
  );
}
