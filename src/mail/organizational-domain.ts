/** The domain that somebody registered, by the Public Suffix List: example.co.uk for mail.example.co.uk (RFC 7489 section 3.2). */
import { getDomain } from 'tldts';

/** The host itself if it has none, such as an address or a public suffix. */
export function organizationalDomain(host: string): string {
  return getDomain(host, { allowPrivateDomains: true }) ?? host;
}
