/**
 * Bounds the page requests in flight, so that pages never crowd out sends: visitors who are not signed in take no slots from
 * signed-in people, and one person leaves slots for the others. A request holds no slot while its form arrives.
 */
import type { Context } from 'koa';
import { createSlotsPerOrganization, type SlotsPerOrganization } from '../api/server-busy.ts';
import type { Visit } from './page.ts';

const max = { authorizing: 100, signedOut: 25, signedIn: 75, perUser: 25 };

export interface RequestSlots {
  whileAuthorizing<Result>(context: Context, work: () => Promise<Result>): Promise<Result>;
  whileHandling(visit: Visit, work: () => Promise<void>): Promise<void>;
}

export function createRequestSlots(): RequestSlots {
  const authorizing = createSlotsPerOrganization(max.authorizing);
  const signedOut = createSlotsPerOrganization(max.signedOut);
  const signedIn = createSlotsPerOrganization(max.signedIn);
  const perUser = createSlotsPerOrganization(max.perUser);
  return {
    whileAuthorizing: (context, work) => withSlot(authorizing, context, '', work),
    whileHandling({ context, user }, work) {
      if (user === null) return withSlot(signedOut, context, '', work);
      return withSlot(perUser, context, user.id, () => withSlot(signedIn, context, '', work));
    },
  };
}

async function withSlot<Result>(
  slots: SlotsPerOrganization,
  context: Context,
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const leave = slots.take(context, key);
  return work().finally(leave);
}
