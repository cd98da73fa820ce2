/**
 * Looks up the addresses of a web host whose name comes from outside. Private and special addresses are left out unless
 * allowed. The caller must connect to these addresses without another look-up, which could be answered differently.
 * Rejects with an Error that names the host.
 */

import type { LookupAddress } from 'node:dns';
import { isIPv6 } from 'node:net';
import { type Resolve, recordsOf } from '#platform/base/net/resolve.ts';
import { isForbidden } from '#platform/vendor/mx-connect.ts';

export interface AddressOptions {
  resolve: Resolve;
  allowPrivate: boolean;
}

export async function addressesOf(
  host: string,
  { resolve, allowPrivate }: AddressOptions,
): Promise<LookupAddress[]> {
  const found = await Promise.all(['A', 'AAAA'].map((type) => lookUp(host, type, resolve)));
  const addresses = found.flat();
  if (addresses.length === 0) throw new Error(`${host} has no address`);
  const allowed = addresses.filter((address) => !isForbidden(address, allowPrivate));
  if (allowed.length === 0) throw new Error(`${host} is at ${addresses.join(', ')}, a private address`);
  return allowed.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
}

async function lookUp(host: string, type: string, resolve: Resolve): Promise<string[]> {
  try {
    return await recordsOf<string>(host, type, resolve);
  } catch (error) {
    throw new Error(`${host} could not be looked up (${(error as NodeJS.ErrnoException).code})`);
  }
}
