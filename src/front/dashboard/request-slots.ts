/**
 * Bounds the page requests in flight, so that pages never crowd out sends: visitors who are not signed in take no slots from
 * signed-in people, and one person or network leaves slots for the others. A request holds no slot while its form arrives.
 */
import type { Context } from 'koa';
import { CallSlots } from '#front/http/server-busy.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import type { PageVisit } from './page.ts';

const max = {
  authorizing: { inAll: 100 },
  /** One: a network. */
  signedOut: { inAll: 25, ofOne: 8 },
  /** One: a user. */
  signedIn: { inAll: 75, ofOne: 25 },
};

export interface RequestSlots {
  whileAuthorizing<Result>(context: Context, work: () => Promise<Result>): Promise<Result>;
  whileHandling(visit: PageVisit, work: () => Promise<void>): Promise<void>;
}

export function createRequestSlots(): RequestSlots {
  const authorizing = new CallSlots(max.authorizing);
  const signedOut = new CallSlots(max.signedOut);
  const signedIn = new CallSlots(max.signedIn);
  return {
    whileAuthorizing: (context, work) => authorizing.during(context, '', work),
    whileHandling: ({ context, user }, work) =>
      user === null
        ? signedOut.during(context, clientNetwork(clientAddress(context)), work)
        : signedIn.during(context, user.id, work),
  };
}
