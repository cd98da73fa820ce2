/**
 * The network that per-client limits count: the address itself for IPv4, the /64 for IPv6, because an IPv6 subscriber has
 * at least a whole /64 (RFC 6177).
 */
import { isIPv6 } from 'node:net';

/** Returns anything that is not an IPv6 address unchanged. */
export function clientNetwork(address: string): string {
  const mapped = /^::ffff:(?<ipv4>\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped.groups!.ipv4!;
  if (!isIPv6(address)) return address;
  return `${groupsOf(address).slice(0, 4).join(':')}::/64`;
}

/** The eight groups, each without leading zeros. */
function groupsOf(address: string): string[] {
  // The URL parser writes an IPv4 address in the last groups as hexadecimal, and drops leading zeros (RFC 5952).
  const { hostname } = new URL(`http://[${address.split('%')[0]}]`);
  const [head = '', tail] = hostname.slice(1, -1).split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  return [...first, ...Array<string>(8 - first.length - last.length).fill('0'), ...last];
}
