/** Which route of an organization would take an address, and if none, why: the answer of `route check` in all ways in. */
import { findDomain } from '#accounts/rows/domains-table.ts';
import { routesOfDomain } from '#mail/received/rows/receiving-routes.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { toDomain } from '#platform/values/address.ts';
import type { ReceivingRoute } from './received-mail.ts';
import { isPostmaster, routeFor } from './receiving-route.ts';

export const checkResults = ['webhook', 'store', 'reject', 'drop', 'no_route', 'not_receiving'] as const;

export interface AddressCheck {
  result: (typeof checkResults)[number];
  /** In a sentence. */
  reason: string;
  route: ReceivingRoute | null;
}

export async function checkAddress(db: Db, orgId: string, address: string): Promise<AddressCheck> {
  const at = address.lastIndexOf('@');
  const domain = at < 1 ? null : toDomain(address.slice(at + 1).replace(/\.$/, ''));
  const refused = (result: 'no_route' | 'not_receiving', reason: string) => ({ result, reason, route: null });
  if (domain === null) return refused('not_receiving', 'This is not an email address with a domain.');
  const found = await findDomain(db, orgId, domain);
  if (!found) return refused('not_receiving', `${domain} is not a domain of this organization.`);
  if (!found.receives) return refused('not_receiving', `Receiving is off for ${domain}. Turn it on.`);
  if (found.status !== 'verified')
    return refused('not_receiving', `${domain} is not verified; it receives as soon as it is.`);
  const routes = await routesOfDomain(db, orgId, domain);
  const route = routeFor(routes, address);
  if (!route)
    return refused(
      'no_route',
      `None of the ${routes.length} routes of ${domain} takes this address, so its mail ${isPostmaster(address) ? 'goes to the operator of this server (RFC 5321 section 4.5.1)' : 'is refused: 550 5.1.1'}.`,
    );
  return { result: route.action, reason: `The route ${route.pattern} takes it: ${outcomeOf(route)}.`, route };
}

export function outcomeOf({ action, webhookId, reply }: ReceivingRoute): string {
  switch (action) {
    case 'webhook':
      return webhookId === null ? 'posted to all webhooks that subscribe to it' : 'posted to one webhook';
    case 'store':
      return 'kept, and in the feed of events';
    case 'reject':
      return `refused with ${reply}`;
    case 'drop':
      return 'taken and forgotten';
  }
}
