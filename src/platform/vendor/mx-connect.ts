/**
 * Single steps of mx-connect: the MX and address look-ups, the rules for private addresses, TLSA matching.
 * Its only public function resolves a domain and connects to the first host that answers, one address after the other.
 * Postern needs the hosts themselves, because a host that answers may still refuse the mail and the next one is then
 * tried, and because it races a host's addresses. Read in mx-connect 2.0.0.
 */

import type { X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import { BlockList, isIPv6 } from 'node:net';
import type { Resolve } from '#platform/base/net/resolve.ts';

export interface MxDelivery {
  domain: string;
  mx: { exchange: string; priority: number; A: string[]; AAAA: string[] }[];
  blockedAddresses: unknown[];
  dnsOptions: { resolveRecords: Resolve } & AddressRules;
  mtaSts: { logger: (entry: object) => void };
}

export interface AddressRules {
  blockLocalAddresses: boolean;
  blockReservedNetworks: boolean;
}

type Step = (delivery: MxDelivery) => Promise<MxDelivery>;

interface Tools {
  /** The reason why the address is refused, or false if it is allowed. */
  isInvalid(delivery: { dnsOptions: AddressRules }, address: string): string | false;
}

interface Dane {
  verifyCertAgainstTlsa(
    leaf: X509Certificate,
    records: { usage: number; selector: number; mtype: number; cert: Buffer }[],
    issuers: X509Certificate[],
  ): { valid: boolean };
}

const require = createRequire(import.meta.url);

export const formatAddress: Step = require('mx-connect/lib/format-address');
export const resolveMX: Step = require('mx-connect/lib/resolve-mx');
export const resolveIP: Step = require('mx-connect/lib/resolve-ip');
export const { verifyCertAgainstTlsa }: Dane = require('mx-connect/lib/dane');
const { isInvalid }: Tools = require('mx-connect/lib/tools');

export function addressRules(allowPrivate: boolean): AddressRules {
  return { blockLocalAddresses: !allowPrivate, blockReservedNetworks: !allowPrivate };
}

/**
 * Azure serves every virtual machine its own configuration and certificates at 168.63.129.16. The address is in a
 * public range, so mx-connect allows it. The IPv6 forms reach it through NAT64, translation and 6to4.
 */
const azureHost = new BlockList();
azureHost.addAddress('168.63.129.16');
for (const wrapped of ['::a83f:8110', '::ffff:0:a83f:8110', '64:ff9b::a83f:8110'])
  azureHost.addAddress(wrapped, 'ipv6');
azureHost.addSubnet('2002:a83f:8110::', 48, 'ipv6');

/** Loopback, private and special networks, and IPv6 addresses that embed an IPv4 address of such a network. */
export function isForbidden(address: string, allowPrivate: boolean): boolean {
  if (!allowPrivate && azureHost.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return true;
  return isInvalid({ dnsOptions: addressRules(allowPrivate) }, address) !== false;
}
