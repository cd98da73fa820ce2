/**
 * SPF (RFC 7208): whether a domain's record lets each of our addresses pass, and what the record should be. The
 * return path's domain is the one that receivers judge; a sender domain's own record is advice.
 */
import { isIPv6 } from 'node:net';
import { type Dns, Unanswered } from '../doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '../finding.ts';
import { isSame } from '../reverse-name.ts';
import type { SendingAddress } from '../sending-addresses.ts';

interface SpfParts {
  dns: Dns;
  senders: SendingAddress[];
  hostname: string;
  /** Whether receivers judge our mail by it. */
  decides: boolean;
}

const timeoutMs = 8_000;

export async function checkSpf(
  domain: string,
  { dns, senders, hostname, decides }: SpfParts,
): Promise<FindingDraft> {
  if (senders.length === 0) return skipped('not known: the addresses of this machine are not known');
  const texts = await dns.records<string[]>(domain, 'TXT');
  const published = texts.map((strings) => strings.join('')).filter((text) => /^v=spf1( |$)/i.test(text));
  const results = await Promise.all(senders.map((sender) => resultFor(domain, sender, dns)));
  const failed = senders.filter((_, at) => results[at]!.result !== 'pass');
  if (failed.length === 0) return ok(`${published.join(' and ')}: pass for ${addressesOf(senders)}`);

  const terms = await termsFor(failed, hostname, dns);
  const record = { type: 'TXT', name: domain, value: withTerms(published, terms) };
  const said = failed.map(({ address }) => {
    const { result, comment } = results[senders.findIndex((sender) => sender.address === address)]!;
    return `${result} for ${address}${result === 'permerror' && comment ? ` (${comment})` : ''}`;
  });
  const found = `${published.length === 0 ? 'no SPF record' : published.join(' and ')}: ${said.join(', ')}`;
  const advice =
    published.length === 0
      ? 'publish one'
      : 'publish this record instead: a domain may have only one SPF record';
  const isRefused = results.some(({ result }) => result === 'fail' || result === 'permerror');
  return (decides && isRefused ? failure : warning)(found, advice, [record]);
}

async function resultFor(domain: string, { address, name }: SendingAddress, dns: Dns) {
  // Brings some thirty megabytes of modules with it, which only who asks should carry.
  const { spf } = await import('mailauth/lib/spf/index.js');
  const { status } = await spf({
    ...{ sender: `postmaster@${domain}`, ip: address, helo: name, mta: name },
    ...{ resolver: dns.resolve as never, maxElapsedTime: timeoutMs },
  });
  if (status.result === 'temperror') throw new Unanswered(`SPF of ${domain}: ${status.comment}`, 'ESERVFAIL');
  return { result: status.result, comment: status.comment };
}

/** By the host's name where that leads to the address, so that the record outlives a change of address. */
async function termsFor(senders: SendingAddress[], hostname: string, dns: Dns): Promise<string[]> {
  const named = await dns.addresses(hostname).catch((): string[] => []);
  const terms = senders.map(({ address }) => {
    if (named.some((one) => isSame(one, address))) return `a:${hostname}`;
    return `${isIPv6(address) ? 'ip6' : 'ip4'}:${address}`;
  });
  return [...new Set(terms)];
}

const isAll = (term: string) => /^[-~?+]?all$/i.test(term);

/** What is there stays, several records become one (RFC 7208 section 3.2), ours come first, and `all` stays last. */
function withTerms(published: string[], terms: string[]): string {
  const there = published.flatMap((record) => record.trim().split(/\s+/).slice(1));
  const rest = [...new Set(there.filter((term) => !isAll(term)))].filter((term) => !terms.includes(term));
  // A redirect holds where there is no `all` (RFC 7208 section 6.1).
  const hasRedirect = rest.some((term) => /^redirect=/i.test(term));
  const last = there.find(isAll) ?? (hasRedirect ? [] : '~all');
  return ['v=spf1', ...terms, ...rest].concat(last).join(' ');
}

function addressesOf(senders: SendingAddress[]): string {
  return senders.map(({ address }) => address).join(', ');
}
