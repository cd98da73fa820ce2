/** A batch is one call of the second, and each element is a request of the day. */
import type { Context } from 'koa';
import type { Caller } from '#accounts/api-keys.ts';
import { type Authorize, requireStillAllowed, UncountedRefusal } from '#front/http/authorize.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { AcceptBatch } from './accept-batch.ts';
import { nameHeld } from './held-header.ts';

export interface CountedParts {
  acceptBatch: AcceptBatch;
  authorize: Authorize;
}

export interface CountedBatch {
  requests: AsyncIterable<SendRequest | Refusal>;
  count: number;
  isAtomic: boolean;
}

export async function acceptCounted(
  { acceptBatch, authorize }: CountedParts,
  context: Context,
  caller: Caller,
  { requests, count, isAtomic }: CountedBatch,
): ReturnType<AcceptBatch> {
  await authorize.countAsMany(context, caller, count);
  try {
    const results = await acceptBatch(requests, caller, isAtomic, () => requireStillAllowed(context.req));
    nameHeld(context, results);
    return results;
  } catch (error) {
    // An atomic batch that does not fit into the day's recipients counts in no window.
    const isLimit = error instanceof Refusal && error.code === 'RATE_LIMIT_EXCEEDED';
    if (isLimit && !(error instanceof UncountedRefusal)) await authorize.uncount(context);
    throw error;
  }
}
