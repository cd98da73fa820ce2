/** Addresses turned round, as DNS is asked about them (RFC 1035 section 3.5, RFC 3596 section 2.5, RFC 5782 section 2). */
import { isIPv6 } from 'node:net';

/** `4.3.2.1` of 1.2.3.4; of an IPv6 address its 32 nibbles. */
export function reversed(address: string): string {
  if (!isIPv6(address)) return address.split('.').reverse().join('.');
  return groupsOf(address)
    .map((group) => group.padStart(4, '0'))
    .join('')
    .split('')
    .reverse()
    .join('.');
}

export function reverseName(address: string): string {
  return `${reversed(address)}.${isIPv6(address) ? 'ip6' : 'in-addr'}.arpa`;
}

/** All eight, in lower case. */
function groupsOf(address: string): string[] {
  const plain = address
    .replace(/%.*$/, '')
    .toLowerCase()
    .replace(/[\d.]+\.\d+$/, asGroups);
  const [head = '', tail] = plain.split('::');
  const before = head.split(':').filter(Boolean);
  const after = (tail ?? '').split(':').filter(Boolean);
  return [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after];
}

/** The last 32 bits may be written as an IPv4 address (RFC 4291 section 2.2). */
function asGroups(dotted: string): string {
  const [a, b, c, d] = dotted.split('.').map(Number) as [number, number, number, number];
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

/** Whether two texts are one address, however they are written. */
export function isSame(one: string, other: string): boolean {
  return isIPv6(one) === isIPv6(other) && reversed(one) === reversed(other);
}
