/** The Public Suffix List: which domains are registered, and below which names. */
import { getDomain, parse } from 'tldts';

/**
 * The domain that somebody registered: example.co.uk for mail.example.co.uk (RFC 7489 section 3.2). The host itself if it has
 * none, such as an address or a public suffix.
 */
export function organizationalDomain(host: string): string {
  return getDomain(host, { allowPrivateDomains: true }) ?? host;
}

/** Whether anybody can register domains below this one, as with co.uk. Names outside the list, such as internal ones, are not. */
export function isPublicSuffix(domain: string): boolean {
  const { publicSuffix, isIcann } = parse(domain);
  return isIcann === true && publicSuffix === domain;
}
