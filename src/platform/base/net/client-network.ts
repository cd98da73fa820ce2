/** IP networks: those of clients, which limits count, and sets of them that are given, such as those of trusted proxies. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The network that per-client limits count: the address itself for IPv4, the /64 for IPv6, because an IPv6 subscriber has
 * at least a whole /64 (RFC 6177). Returns text that is not an IP address unchanged.
 */
export function clientNetwork(address: string): string {
  // ipaddr.js also accepts notations that sockets never report, such as an IPv4 address in octal.
  if (!isIP(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  return `${ipv6Groups(address).slice(0, 4).join(':')}::/64`;
}

/**
 * Whether others can reach the address from the Internet. It may be one of this machine's own, to which mail, webhooks and
 * fetches must not go (platform/vendor/mx-connect.ts).
 */
export function isPublicAddress(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.process(address).range() === 'unicast';
}

/** The eight groups of an IPv6 address, each without leading zeros. */
export function ipv6Groups(address: string): string[] {
  return ipaddr.IPv6.parse(address).parts.map((group) => group.toString(16));
}

type Network = [address: ipaddr.IPv4 | ipaddr.IPv6, prefixLength: number];

/** Null if the text is not an address or a network. IPv4 in IPv6 (RFC 4291 section 2.5.5.2) is read as IPv4. */
function readNetwork(text: string): Network | null {
  const [, address = '', length] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  // ipaddr.js also accepts notations of other kinds, such as an address in octal.
  if (isIP(address) === 0 || address.includes('%')) return null;
  const read = ipaddr.process(address);
  const bits = bitsOf(read);
  const writtenBits = bitsOf(ipaddr.parse(address));
  const prefixLength = length === undefined ? bits : Number(length) - (writtenBits - bits);
  return prefixLength >= 0 && prefixLength <= bits ? [read, prefixLength] : null;
}

const bitsOf = (address: ipaddr.IPv4 | ipaddr.IPv6) => (address.kind() === 'ipv4' ? 32 : 128);

/** As it is written in settings; null if it is not one. */
export function networkText(text: string): string | null {
  const network = readNetwork(text);
  if (network === null) return null;
  const [address, length] = network;
  return length === bitsOf(address) ? address.toString() : `${address.toString()}/${length}`;
}

/** Whether an address is in one of the networks; text that is not an address is in none. */
export function matcherOf(networks: readonly string[]): (address: string) => boolean {
  const read = networks.flatMap((text) => {
    const network = readNetwork(text);
    return network ? [network] : [];
  });
  return (address) => {
    if (isIP(address) === 0) return false;
    const parsed = ipaddr.process(address);
    return read.some(([of, length]) => parsed.kind() === of.kind() && parsed.match([of, length] as never));
  };
}
