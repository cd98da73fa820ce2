/**
 * SPF (RFC 7208): whether the record of the return path's domain lets each of our addresses pass, and what it should be.
 * Receivers evaluate no other: a record at the sender domain itself decides nothing.
 */
import { isIPv6 } from 'node:net';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import { type Dns, Unanswered } from '#operate/doctor/doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { SendingAddress } from '#operate/doctor/sending-addresses.ts';
import { isSameAddress } from '#platform/values/reverse-name.ts';
import { evaluateSpf } from '#platform/vendor/mailauth-spf-dmarc.ts';

const timeoutMs = 8_000;

export async function checkSpf(
  context: Pick<DoctorContext, 'dns' | 'config' | 'senders'>,
): Promise<FindingDraft> {
  const { dns, config } = context;
  const domain = config.returnPathDomain;
  const senders = await context.senders;
  if (senders.length === 0) return skipped('not known: the addresses of this server are not known');
  const texts = await dns.records<string[]>(domain, 'TXT');
  const published = texts.map((strings) => strings.join('')).filter((text) => /^v=spf1( |$)/i.test(text));
  const results = await Promise.all(senders.map((sender) => resultFor(domain, sender, dns)));
  const failed = senders.filter((_, at) => results[at]!.result !== 'pass');
  if (failed.length === 0) return ok(`${published.join(' and ')}: pass for ${addressesOf(senders)}`);

  const terms = await termsFor(failed, config.hostname, dns);
  const record = { type: 'TXT', name: domain, value: withTerms(published, terms) };
  const failures = failed.map(({ address }) => {
    const { result, comment } = results[senders.findIndex((sender) => sender.address === address)]!;
    return `${result} for ${address}${result === 'permerror' && comment ? ` (${comment})` : ''}`;
  });
  const found = `${published.length === 0 ? 'no SPF record' : published.join(' and ')}: ${failures.join(', ')}`;
  const advice =
    published.length === 0
      ? 'publish one'
      : 'publish this record instead: a domain may have only one SPF record';
  const isRefused = results.some(({ result }) => result === 'fail' || result === 'permerror');
  return (isRefused ? failure : warning)(found, advice, [record]);
}

async function resultFor(domain: string, { address, name }: SendingAddress, dns: Dns) {
  const { result, comment } = await evaluateSpf({
    sender: `postmaster@${domain}`,
    ip: address,
    helo: name,
    resolver: dns.resolve,
    maxElapsedTime: timeoutMs,
  });
  if (result === 'temperror') throw new Unanswered(`SPF of ${domain}: ${comment}`, 'ESERVFAIL');
  return { result, comment };
}

/** Uses the hostname if it resolves to the address, so that the record stays right when the address changes. */
async function termsFor(senders: SendingAddress[], hostname: string, dns: Dns): Promise<string[]> {
  const named = await dns.addresses(hostname).catch((): string[] => []);
  const terms = senders.map(({ address }) => {
    if (named.some((one) => isSameAddress(one, address))) return `a:${hostname}`;
    return `${isIPv6(address) ? 'ip6' : 'ip4'}:${address}`;
  });
  return [...new Set(terms)];
}

const isAll = (term: string) => /^[-~?+]?all$/i.test(term);

/**
 * Joins several records into one (RFC 7208 section 3.2) and keeps their terms. Our terms come first, and `all` stays last.
 */
function withTerms(published: string[], terms: string[]): string {
  const existing = published.flatMap((record) => record.trim().split(/\s+/).slice(1));
  const rest = [...new Set(existing.filter((term) => !isAll(term)))].filter((term) => !terms.includes(term));
  // A redirect works only without `all` (RFC 7208 section 6.1).
  const hasRedirect = rest.some((term) => /^redirect=/i.test(term));
  const last = existing.find(isAll) ?? (hasRedirect ? [] : '~all');
  return ['v=spf1', ...terms, ...rest].concat(last).join(' ');
}

function addressesOf(senders: SendingAddress[]): string {
  return senders.map(({ address }) => address).join(', ');
}
