/**
 * Bounds the page requests in flight, so that pages never crowd out sends: visitors who are not signed in take no slots from
 * signed-in people, and one organization, person or network leaves slots for the others. A request holds no slot while its form
 * arrives.
 */
import type { Context } from 'koa';
import { CallSlots } from '#front/http/server-busy.ts';
import { Slots } from '#platform/base/limits/slots.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { OrgVisit, PageVisit } from './page.ts';

const max = {
  /** One: a network. Whatever its browsers say they are, each needs the database for a moment, so those beyond wait. */
  authorizing: { inAll: 100, ofOne: 'as many as are free' as const },
  /** One: a network. Those beyond wait: the work is short, and strangers may come from any number of networks. */
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
  if (visit.user === null) return networkOf(visit.context);
  return 'org' in visit && !visit.user.isOperator ? visit.org.id : visit.user.id;
}

const networkOf = (context: Context) => clientNetwork(clientAddress(context));

export function createRequestSlots(): RequestSlots {
  const authorizing = new Slots(max.authorizing);
  const signedOut = new Slots(max.signedOut);
  const signedIn = new CallSlots(max.signedIn);
  return {
    whileAuthorizing: (context, work) => inTurn(authorizing, context, work),
    whileHandling: (visit, work) =>
      visit.user === null
        ? inTurn(signedOut, visit.context, work)
        : signedIn.during(visit.context, slotOwner(visit), work),
  };
}

async function inTurn<Result>(slots: Slots, context: Context, work: () => Promise<Result>): Promise<Result> {
  const free = await slots.enter(networkOf(context));
  try {
    if (context.res.closed)
      throw new Refusal('BAD_REQUEST', 'The connection ended before the request was begun.');
    return await work();
  } finally {
    free?.();
  }
}
