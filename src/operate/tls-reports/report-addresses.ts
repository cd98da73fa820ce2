/** The addresses to which a domain wants its TLS reports: the TXT record at _smtp._tls.DOMAIN (RFC 8460 section 3). */
import { domainOf } from '#platform/values/address.ts';

export type ReportAddress = { kind: 'mail'; address: string } | { kind: 'https'; url: string };

/** The first ones; a stranger's record must not make us send to hundreds. */
const maxAddresses = 4;
const maxLength = 2048;

/**
 * Empty if the domain wants none. `records`: the TXT records, each joined. If several begin as one should, none counts. An
 * https URL on another port than `httpsPort`, or with credentials, is left out.
 */
export function reportAddresses(records: string[], httpsPort = 443): ReportAddress[] {
  const [record, ...others] = records.filter((text) => /^v=TLSRPTv1\s*(;|$)/.test(text.trim()));
  if (record === undefined || others.length > 0) return [];
  const rua = /(?:^|;)\s*rua\s*=\s*([^;]*)/.exec(record)?.[1] ?? '';
  return rua
    .split(',')
    .slice(0, maxAddresses)
    .flatMap((uri) => addressOf(uri.trim(), httpsPort) ?? []);
}

function addressOf(uri: string, httpsPort: number): ReportAddress | null {
  if (uri.length > maxLength || !URL.canParse(uri)) return null;
  const { protocol, pathname, href, port, username, password } = new URL(uri);
  if (protocol === 'https:')
    return Number(port || 443) === httpsPort && !username && !password ? { kind: 'https', url: href } : null;
  if (protocol !== 'mailto:') return null;
  try {
    const address = decodeURIComponent(pathname);
    return domainOf(address) === null ? null : { kind: 'mail', address };
  } catch {
    return null;
  }
}
