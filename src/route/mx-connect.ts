/**
 * mx-connect's steps one by one, with types for what we use of them. Its front door resolves and connects in one
 * go to the first host that answers; we need to know the hosts, because a host that answers may still refuse, and
 * the next one is then to be tried; and we race a host's addresses, which it tries one after the other.
 */
import { createRequire } from 'node:module';
import type { Resolve } from './resolver.ts';

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

/** Loopback, private and special networks, also where an IPv6 address only wraps such an IPv4 one. */
export function isForbidden(address: string, allowPrivate: boolean): boolean {
  return tools.isInvalid({ dnsOptions: addressRules(allowPrivate) }, address) !== false;
}
