/** DMARC (RFC 9989): whether the domain has a record, its own or inherited, and our mail passes by it. */
import type { DnsRecord } from '../../../accounts/domains.ts';
import type { Config } from '../../../config.ts';
import { type Dns, Unanswered } from '../doctor-dns.ts';
import { type FindingDraft, failure, ok, warning } from '../finding.ts';

interface DmarcParts {
  dns: Dns;
  config: Pick<Config, 'returnPathDomain'>;
  /** What is to be published where there is nothing. */
  record: DnsRecord;
}

export async function checkDmarc(domain: string, { dns, config, record }: DmarcParts): Promise<FindingDraft> {
  const { dmarc } = await import('mailauth/lib/dmarc/index.js');
  const judged = await dmarc({
    headerFrom: [domain],
    // The two that our mail has: SPF is the return path's, and each domain signs for itself.
    ...{ spfDomains: [config.returnPathDomain], dkimDomains: [{ id: 'ours', domain }] },
    resolver: dns.resolve as never,
    strict: true,
  });
  if (judged === false) return failure(`DMARC cannot be evaluated for ${domain}`, 'register another domain');
  if (judged.status.result === 'temperror') {
    // Says more: whether it is DNS as a whole that is silent.
    await dns.records(`_dmarc.${domain}`, 'TXT');
    throw new Unanswered(`DNS has no answer for the DMARC record of ${domain}`, 'ESERVFAIL');
  }
  if (judged.status.result === 'none') return missing(dns, record);
  const alignment = judged.alignment as { spf?: { result?: unknown }; dkim?: { result?: unknown } };
  const aligned = [...(alignment.dkim?.result ? ['DKIM'] : []), ...(alignment.spf?.result ? ['SPF'] : [])];
  return ok(`${judged.rr} (at ${judged.policyDomain}); aligned by ${aligned.join(' and ')}`);
}

async function missing(dns: Dns, { type, name, value }: DnsRecord): Promise<FindingDraft> {
  const found = (await dns.records<string[]>(name, 'TXT')).map((strings) => strings.join(''));
  if (found.length === 0) {
    return warning('no DMARC record; the large mailbox providers ask for one', 'publish it', [
      { type, name, value },
    ]);
  }
  return warning(
    `${name} does not have exactly one valid DMARC record: ${found.join(' | ')}`,
    'publish this record instead: there must be exactly one, starting with v=DMARC1 and containing a policy',
    [{ type, name, value }],
  );
}
