/** The receiving route of an address: the first of its domain's routes whose pattern takes it (route-pattern.ts). */
import { compareKey } from '#platform/values/address.ts';
import type { ReceivingRoute } from './received-mail.ts';
import { matchesPattern } from './route-pattern.ts';

/** `routes` are in their order. Null: none of them takes the address, which may end in the dot of the root. */
export function routeFor(routes: readonly ReceivingRoute[], address: string): ReceivingRoute | null {
  const key = compareKey(address.replace(/\.$/, ''));
  const domain = key.slice(key.lastIndexOf('@') + 1);
  return routes.find((route) => route.domain === domain && matchesPattern(route.pattern, key)) ?? null;
}

/** RFC 5321 section 4.5.1: each domain with mail has one. */
export function isPostmaster(address: string): boolean {
  return /^postmaster@/i.test(address);
}
