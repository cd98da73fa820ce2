/**
 * The addresses of this service and their roles. Mail to any other address is refused: nothing is relayed.
 *
 *   b-…                          the return path of one delivery (mail/returned/return-path.ts)
 *   u-…                          mail to it unsubscribes the recipient of one delivery
 *   postmaster@, abuse@          mail from people; required by RFC 5321 section 4.5.1 and RFC 2142
 *   complaints@                  complaints of mailbox providers (ARF)
 *   dmarc@, tls-reports@         reports on domains: DMARC aggregate (RFC 7489), TLS (RFC 8460)
 *
 * They are at the return path domain of the server and at those of the sender domains; the named ones also at the host's own
 * name. At a domain that an application receives at, postmaster@ is one as well if no route takes it. Letter case never matters.
 */
import { toDomain } from '#platform/values/address.ts';
import type { ReadReturnPath } from './return-path.ts';

export type AddressRole = 'return-path' | 'unsubscribe' | 'letters' | 'complaints' | 'reports';

export type OwnAddress =
  | { role: 'return-path' | 'unsubscribe'; deliveryId: string }
  | { role: NamedRole; name: string };

type NamedRole = Exclude<AddressRole, 'return-path' | 'unsubscribe'>;

export type ServiceAddress =
  | OwnAddress
  /** At one of our domains, but the address does not exist. */
  | { role: 'unknown' }
  /** At another domain. */
  | { role: 'other-domain' };

const names: Record<string, NamedRole> = {
  postmaster: 'letters',
  abuse: 'letters',
  complaints: 'complaints',
  dmarc: 'reports',
  'tls-reports': 'reports',
};

export type ReadServiceAddress = (address: string) => Promise<ServiceAddress>;

export interface OwnNames {
  returnPathDomain: string;
  hostname: string;
  /** Whether the name is the return path of a sender domain. */
  isReturnPath(name: string): Promise<boolean>;
  /** Whether an organization receives mail at the name. */
  isReceiving(name: string): Promise<boolean>;
}

export function createServiceAddressReader(
  own: OwnNames,
  readReturnPath: ReadReturnPath,
  readUnsubscribe: ReadReturnPath = () => null,
): ReadServiceAddress {
  const [returnPathDomain, hostname] = [own.returnPathDomain.toLowerCase(), own.hostname.toLowerCase()];
  const keyedAddress = (localPart: string): ServiceAddress | null => {
    for (const [role, read] of [
      ['return-path', readReturnPath],
      ['unsubscribe', readUnsubscribe],
    ] as const) {
      const deliveryId = read(localPart);
      if (deliveryId !== null) return { role, deliveryId };
    }
    return null;
  };
  const elsewhere = async (localPart: string, domain: string): Promise<ServiceAddress> => {
    const isTheirs = localPart === 'postmaster' && (await own.isReceiving(domain));
    return isTheirs ? named('postmaster')! : { role: 'other-domain' };
  };
  return async (address) => {
    const at = address.lastIndexOf('@');
    // RFC 5321 section 4.5.1: postmaster needs no domain.
    if (at < 0)
      return address.toLowerCase() === 'postmaster' ? named('postmaster')! : { role: 'other-domain' };
    const localPart = address.slice(0, at).toLowerCase();
    const written = address.slice(at + 1).replace(/\.$/, '');
    const domain = toDomain(written) ?? written.toLowerCase();
    const isReturnPath =
      domain === returnPathDomain || (domain !== hostname && (await own.isReturnPath(domain)));
    if (!isReturnPath && domain !== hostname) return elsewhere(localPart, domain);
    const keyed = isReturnPath ? keyedAddress(localPart) : null;
    if (keyed !== null) return keyed;
    // A percent hack or a route in the local part asks to be relayed (RFC 5321 section 3.6.1, appendix C).
    if (/[%!@:]/.test(localPart)) return { role: 'other-domain' };
    return named(localPart) ?? { role: 'unknown' };
  };
}

function named(localPart: string): ServiceAddress | null {
  return Object.hasOwn(names, localPart) ? { role: names[localPart]!, name: localPart } : null;
}
