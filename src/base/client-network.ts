/**
 * The network that per-client limits count: the address itself for IPv4, the /64 for IPv6, because an IPv6 subscriber has
 * at least a whole /64 (RFC 6177).
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Returns text that is not an IP address unchanged. */
export function clientNetwork(address: string): string {
  // ipaddr.js also accepts notations that sockets never report, such as an IPv4 address in octal.
  if (!isIP(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  return `${ipv6Groups(address).slice(0, 4).join(':')}::/64`;
}

/** The eight groups of an IPv6 address, each without leading zeros. */
export function ipv6Groups(address: string): string[] {
  return ipaddr.IPv6.parse(address).parts.map((group) => group.toString(16));
}
