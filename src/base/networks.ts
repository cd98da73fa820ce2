/** Sets of IP networks, such as the proxies that are trusted: `192.0.2.20`, `10.0.0.0/8`, `2001:db8::/32`. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

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

/** Whether an address is in one of the networks; text that is no address is in none. */
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
