/**
 * mx-connect's steps one by one, with types for what we use of them. Its front door resolves and connects in one
 * go to the first host that answers; we need to know the hosts, because a host that answers may still refuse, and
 * the next one is then to be tried; and we race a host's addresses, which it tries one after the other.
 */
import { createRequire } from 'node:module';
import { BlockList, isIPv6 } from 'node:net';
import type { Resolve } from '../route/resolver.ts';

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
  /** Why no mail goes to this address; false where it may. */
  isInvalid(delivery: { dnsOptions: AddressRules }, address: string): string | false;
}

const require = createRequire(import.meta.url);

export const formatAddress: Step = require('mx-connect/lib/format-address');
export const resolveMX: Step = require('mx-connect/lib/resolve-mx');
export const resolveIP: Step = require('mx-connect/lib/resolve-ip');
const tools: Tools = require('mx-connect/lib/tools');

export function addressRules(allowPrivate: boolean): AddressRules {
  return { blockLocalAddresses: !allowPrivate, blockReservedNetworks: !allowPrivate };
}

/**
 * Azure answers every virtual machine at 168.63.129.16 with the machine's own configuration and certificates. The address
 * is in a public range, so mx-connect allows it. The IPv6 forms carry it through NAT64, translation and 6to4.
 */
const azureHost = new BlockList();
azureHost.addAddress('168.63.129.16');
for (const wrapped of ['::a83f:8110', '::ffff:0:a83f:8110', '64:ff9b::a83f:8110'])
  azureHost.addAddress(wrapped, 'ipv6');
azureHost.addSubnet('2002:a83f:8110::', 48, 'ipv6');

/** Loopback, private and special networks, also where an IPv6 address only wraps such an IPv4 one. */
export function isForbidden(address: string, allowPrivate: boolean): boolean {
  if (!allowPrivate && azureHost.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return true;
  return tools.isInvalid({ dnsOptions: addressRules(allowPrivate) }, address) !== false;
}
