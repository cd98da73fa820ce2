/**
 * Bounds the page requests in flight, so that pages never crowd out sends: visitors who are not signed in take no slots from
 * signed-in people, and one person or network leaves slots for the others. A request holds no slot while its form arrives.
 */
import type { Context } from 'koa';
import { clientAddress } from '../api/authorize.ts';
import { createSlotsPerOrganization, type SlotsPerOrganization } from '../api/server-busy.ts';
import { clientNetwork } from '../base/client-network.ts';
import type { Visit } from './page.ts';

const max = {
  authorizing: 100,
  signedOut: 25,
  signedOutPerNetwork: 8,
  signedIn: 75,
  perUser: 25,
};

export interface RequestSlots {
  whileAuthorizing<Result>(context: Context, work: () => Promise<Result>): Promise<Result>;
  whileHandling(visit: Visit, work: () => Promise<void>): Promise<void>;
}

export function createRequestSlots(): RequestSlots {
  const authorizing = createSlotsPerOrganization(max.authorizing);
  const signedOut = createSlotsPerOrganization(max.signedOut);
  const signedOutPerNetwork = createSlotsPerOrganization(max.signedOutPerNetwork);
  const signedIn = createSlotsPerOrganization(max.signedIn);
  const perUser = createSlotsPerOrganization(max.perUser);
  return {
    whileAuthorizing: (context, work) => withSlot(authorizing, context, '', work),
    whileHandling({ context, user }, work) {
      if (user !== null)
        return withSlot(perUser, context, user.id, () => withSlot(signedIn, context, '', work));
      return withSlot(signedOutPerNetwork, context, networkOf(context), () =>
        withSlot(signedOut, context, '', work),
      );
    },
  };
}

const networkOf = (context: Context) => clientNetwork(clientAddress(context));

async function withSlot<Result>(
  slots: SlotsPerOrganization,
  context: Context,
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const leave = slots.take(context, key);
  return work().finally(leave);
}
