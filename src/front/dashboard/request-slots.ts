/**
 * Bounds the page requests in flight, so that pages never crowd out sends: visitors who are not signed in take no slots from
 * signed-in people, and one organization, person or network leaves slots for the others. A request holds no slot while its form
 * arrives.
 */
import type { Context } from 'koa';
import { CallSlots } from '#front/http/server-busy.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import type { OrgVisit, PageVisit } from './page.ts';

const max = {
  authorizing: { inAll: 100 },
  /** One: a network. */
  signedOut: { inAll: 25, ofOne: 8 },
  /** One: an organization; on other pages, and for an operator, a person. */
  signedIn: { inAll: 75, ofOne: 25 },
};

export interface RequestSlots {
  whileAuthorizing<Result>(context: Context, work: () => Promise<Result>): Promise<Result>;
  whileHandling(visit: PageVisit, work: () => Promise<void>): Promise<void>;
}

/** Whose slots a request takes: an organization has its share, however many people it has. */
export function slotOwner(visit: PageVisit | OrgVisit): string {
  if (visit.user === null) return clientNetwork(clientAddress(visit.context));
  return 'org' in visit && !visit.user.isOperator ? visit.org.id : visit.user.id;
}

export function createRequestSlots(): RequestSlots {
  const authorizing = new CallSlots(max.authorizing);
  const signedOut = new CallSlots(max.signedOut);
  const signedIn = new CallSlots(max.signedIn);
  return {
    whileAuthorizing: (context, work) => authorizing.during(context, '', work),
    whileHandling: (visit, work) =>
      (visit.user === null ? signedOut : signedIn).during(visit.context, slotOwner(visit), work),
  };
}
