/**
 * Bounds the page requests in flight, so that pages never crowd out sends: visitors who are not signed in take no slots from
 * signed-in people, and one person or network leaves slots for the others. A request holds no slot while its form arrives.
 */
import type { Context } from 'koa';
import { type CallSlots, createCallSlots } from '../api/server-busy.ts';
import { clientAddress } from '../base/client-address.ts';
import { clientNetwork } from '../base/client-network.ts';
import type { PageVisit } from './page.ts';

const max = {
  authorizing: 100,
  signedOut: 25,
  signedOutPerNetwork: 8,
  signedIn: 75,
  perUser: 25,
};

export interface RequestSlots {
  whileAuthorizing<Result>(context: Context, work: () => Promise<Result>): Promise<Result>;
  whileHandling(visit: PageVisit, work: () => Promise<void>): Promise<void>;
}

export function createRequestSlots(): RequestSlots {
  const authorizing = createCallSlots(max.authorizing);
  const signedOut = createCallSlots(max.signedOut);
  const signedOutPerNetwork = createCallSlots(max.signedOutPerNetwork);
  const signedIn = createCallSlots(max.signedIn);
  const perUser = createCallSlots(max.perUser);
  return {
    whileAuthorizing: (context, work) => withSlot(authorizing, context, undefined, work),
    whileHandling({ context, user }, work) {
      if (user !== null)
        return withSlot(perUser, context, user.id, () => withSlot(signedIn, context, undefined, work));
      return withSlot(signedOutPerNetwork, context, networkOf(context), () =>
        withSlot(signedOut, context, undefined, work),
      );
    },
  };
}

const networkOf = (context: Context) => clientNetwork(clientAddress(context));

async function withSlot<Result>(
  slots: CallSlots,
  context: Context,
  caller: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  const leave = slots.take(context, caller);
  return work().finally(leave);
}
