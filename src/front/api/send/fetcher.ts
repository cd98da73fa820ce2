/** Fetches the attachments of one call. */
import type { Context } from 'koa';
import type { Caller } from '#accounts/api-keys.ts';
import { requireStillAllowed } from '#front/http/authorize.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { FetchAll } from './check-send.ts';
import type { FetchAttachments } from './fetch-attachments.ts';

/** Fetches the attachments that are at URLs, while the client waits; by then, its key may have been revoked. */
export function fetcherOf(
  { fetchAttachments }: { fetchAttachments: FetchAttachments },
  context: Context,
  caller: Caller,
  slot: ByteHold,
): FetchAll {
  return async (files) => {
    const fetched = await fetchAttachments(caller.orgId, files, slot, whenHungUp(context.res));
    await requireStillAllowed(context.req);
    return fetched;
  };
}

/** Aborts if the client disconnects before the response is written. */
function whenHungUp(response: Context['res']): AbortSignal {
  const hungUp = new AbortController();
  const abort = () =>
    hungUp.abort(new Refusal('BAD_REQUEST', 'The connection ended before the attachments were fetched.'));
  if (response.destroyed) abort();
  else response.once('close', abort);
  return hungUp.signal;
}
