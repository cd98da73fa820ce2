/** Where a domain wants its TLS reports: the TXT record at _smtp._tls.DOMAIN (RFC 8460 section 3). */
import { domainOf } from '../../mail/address.ts';

export type ReportAddress = { kind: 'mail'; address: string } | { kind: 'https'; url: string };

/** The first ones; a stranger's record must not make us send to hundreds. */
const maxAddresses = 4;

/** Empty if the domain wants none. `records`: the TXT records, each joined. If several begin as one should, none counts. */
export function reportAddresses(records: string[]): ReportAddress[] {
  const [record, ...others] = records.filter((text) => /^v=TLSRPTv1\s*(;|$)/.test(text.trim()));
  if (record === undefined || others.length > 0) return [];
  const rua = /(?:^|;)\s*rua\s*=\s*([^;]*)/.exec(record)?.[1] ?? '';
  return rua
    .split(',')
    .slice(0, maxAddresses)
    .flatMap((uri) => addressOf(uri.trim()) ?? []);
}

function addressOf(uri: string): ReportAddress | null {
  if (!URL.canParse(uri)) return null;
  const { protocol, pathname, href } = new URL(uri);
  if (protocol === 'https:') return { kind: 'https', url: href };
  if (protocol !== 'mailto:') return null;
  try {
    const address = decodeURIComponent(pathname);
    return domainOf(address) === null ? null : { kind: 'mail', address };
  } catch {
    return null;
  }
}
