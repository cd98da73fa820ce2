/**
 * Fetches the attachments of a send that are at URLs. accept.ts asks for them after every check that needs no content, so
 * that neither a repeat nor a send that is refused makes us fetch anything.
 *
 * Bounds: files of a send (attachments.ts), fetches at once of a send and of an organization, the time for all files of a
 * send, and the size of all its attachments together. Bytes count in the send's admission slot as they arrive.
 */

import { BodyBudgetExceeded } from '#front/http/request-body.ts';
import type { Attachment } from '#mail/compose/attachment.ts';
import type { Download } from '#mail/webhooks/guarded-get.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import { limitConcurrency, Slots } from '#platform/base/limits/slots.ts';
import { type Issue, Refusal } from '#platform/values/refusal.ts';
import { type GivenAttachment, largestTotal } from './attachments.ts';

/** `stopped` ends the fetches when nobody waits for the answer any more. */
export type FetchAttachments = (
  orgId: string,
  files: GivenAttachment[],
  slot: Pick<ByteHold, 'add'>,
  stopped: AbortSignal,
) => Promise<Attachment[]>;

const maxOfSend = 4;
/** So that slow servers never keep many of our connections. */
const maxOfOrganization = 16;
const timeoutMs = 15_000;

export function createFetchAttachments(download: Download, clock: Clock): FetchAttachments {
  const slots = new Slots({ ofOne: maxOfOrganization });
  return async (orgId, files, slot, stopped) => {
    const count = Math.min(maxOfSend, files.filter(({ url }) => url !== undefined).length);
    const queueTime = endAfter(clock, stopped, () => new BodyBudgetExceeded(queueFull));
    // All together, so that a send does not wait for another one once it has begun.
    const { signal } = queueTime;
    const leave = await slots.enter(orgId, { count, signal }).finally(queueTime.cancel);
    if (!leave) throw signal.reason;
    // Time in the queue does not count, because the servers of the files have no part in it.
    const fetchTime = endAfter(
      clock,
      stopped,
      () => new Error(`the files took longer than ${timeoutMs / 1000} s`),
    );
    try {
      return await fetchAll(files, slot, count, (url, take) => download(url, take, fetchTime.signal));
    } finally {
      fetchTime.cancel();
      leave();
    }
  };
}

const queueFull =
  `The organization is fetching ${maxOfOrganization} attachments, and none of them ended in time. ` +
  'Nothing was charged. Retry in 1 s.';

/** A signal that ends with `stopped`, or with `reason` when the time is up. */
function endAfter(clock: Clock, stopped: AbortSignal, reason: () => Error) {
  const time = new AbortController();
  const cancel = clock.after(timeoutMs, () => time.abort(reason()));
  return { signal: AbortSignal.any([stopped, time.signal]), cancel };
}

type Take = (bytes: number) => Promise<void>;

async function fetchAll(
  files: GivenAttachment[],
  slot: Pick<ByteHold, 'add'>,
  atOnce: number,
  get: (url: string, take: Take) => Promise<Buffer>,
): Promise<Attachment[]> {
  let left = files.reduce((rest, { content }) => rest - (content?.length ?? 0), largestTotal);
  const take = async (bytes: number) => {
    left -= bytes;
    if (left < 0) throw new Error('the attachments are larger than 10 MiB in all');
    if ((await slot.add(bytes)) === false) throw new BodyBudgetExceeded();
  };
  const limited = limitConcurrency(atOnce);
  const results = await Promise.allSettled(
    files.map(async ({ url, content, ...file }) => ({
      ...file,
      content: content ?? (await limited(() => get(url!, take))),
    })),
  );
  const failures = results.flatMap((result, index) =>
    result.status === 'rejected' ? [{ index, error: result.reason as Error }] : [],
  );
  const refusal = failures.find(({ error }) => error instanceof Refusal);
  if (refusal) throw refusal.error;
  if (failures.length > 0) {
    const issues = failures.map(({ index, error }) => issueOf(index, files[index]!.url!, error));
    const message = 'An attachment could not be fetched. Nothing was charged.';
    throw new Refusal('VALIDATION_ERROR', message, { issues });
  }
  return results.map((result) => (result as PromiseFulfilledResult<Attachment>).value);
}

function issueOf(index: number, url: string, { message }: Error): Issue {
  const path = ['attachments', String(index), 'url'];
  return {
    code: 'custom',
    expected: 'a URL from which the file can be fetched',
    received: `string of ${url.length} characters`,
    path,
    message: `${path.join('.')}: the file could not be fetched: ${message}`,
  };
}
