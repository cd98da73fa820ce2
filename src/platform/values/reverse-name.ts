/** Reversed addresses, for PTR and blocklist queries (RFC 1035 section 3.5, RFC 3596 section 2.5, RFC 5782 section 2). */
import { isIPv6 } from 'node:net';
import { ipv6Groups } from '#platform/base/net/client-network.ts';

/** `4.3.2.1` for 1.2.3.4; the 32 nibbles of an IPv6 address. */
export function reversed(address: string): string {
  if (!isIPv6(address)) return address.split('.').reverse().join('.');
  return ipv6Groups(address)
    .map((group) => group.padStart(4, '0'))
    .join('')
    .split('')
    .reverse()
    .join('.');
}

export function reverseName(address: string): string {
  return `${reversed(address)}.${isIPv6(address) ? 'ip6' : 'in-addr'}.arpa`;
}

/** An IPv6 address can be written in several ways. */
export function isSameAddress(one: string, other: string): boolean {
  return isIPv6(one) === isIPv6(other) && reversed(one) === reversed(other);
}
