/**
 * Accepts several sends of one call with one commit. Each is checked, composed and decided as accept.ts does with a single one,
 * and refused by itself; if the batch is atomic, the first refusal is that of the whole.
 */
import { type Accepted, type AcceptParts, answered, prepareSend } from '#mail/accept/accept.ts';
import { type Commit, startCommit } from '#mail/accept/commit.ts';
import type { Sender, SendRequest } from '#mail/accept/requested-send.ts';
import type { Decision } from '#mail/accept/rows/acceptance.ts';
import type { RefusedSend } from '#mail/record/refused-sends.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import { limitConcurrency } from '#platform/base/limits/slots.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import { asRefusal, Refusal } from '#platform/values/refusal.ts';

export interface AcceptBatchParts extends Omit<AcceptParts, 'commit'> {
  commitAll: Commit['all'];
  /** Called with each element that is refused while others are accepted, for the mail log. */
  onRefusedSend(send: RefusedSend): void;
}

/**
 * `requests` are read one after the other while earlier ones are being composed; a Refusal stands for one that is not valid. If
 * reading fails, nothing is accepted. An atomic batch throws the Refusal of its first bad element, with its index.
 */
export type AcceptBatch = (
  requests: AsyncIterable<SendRequest | Refusal>,
  caller: Sender,
  isAtomic: boolean,
  beforeCommit: () => Promise<void>,
) => Promise<(Accepted | Refusal)[]>;

/** At the same time, of one batch and of all: enough for every thread, and far below what the composing queue takes. */
const maxComposing = 8;
const maxComposingOfAll = 256;

/** Composed, or decided without a commit. */
type Prepared = { send: Send; request: SendRequest } | Accepted | Refusal;

export function createAcceptBatch(parts: AcceptBatchParts): AcceptBatch {
  const amongAll = limitConcurrency(maxComposingOfAll);
  return async (requests, caller, isAtomic, beforeCommit) => {
    const inTurn = limitConcurrency(maxComposing);
    const composing: Promise<Prepared>[] = [];
    for await (const one of requests) {
      if (isAtomic && one instanceof Refusal) throw withIndex(one, composing.length);
      composing.push(
        one instanceof Refusal
          ? Promise.resolve(one)
          : inTurn(() => amongAll(() => prepare(parts, one, caller))),
      );
    }
    const prepared = await Promise.all(composing);
    if (isAtomic) throwFirst(prepared);
    await beforeCommit();
    const results = await commitAll(parts, prepared, isAtomic);
    for (const one of results)
      if (one instanceof Refusal)
        parts.onRefusedSend({ sender: caller, refusal: one, recipients: one.recipients });
    return results;
  };
}

/** Never rejects, because it may not be awaited. */
async function prepare(parts: AcceptBatchParts, request: SendRequest, caller: Sender): Promise<Prepared> {
  try {
    return await prepareSend(parts, request, caller);
  } catch (error) {
    return refusalOf(error, request);
  }
}

async function commitAll(
  parts: AcceptBatchParts,
  prepared: Prepared[],
  isAtomic: boolean,
): Promise<(Accepted | Refusal)[]> {
  const started = prepared.map((one) => ('send' in one ? startCommit(parts, one.send, one.request) : null));
  const sends = prepared.flatMap((one) => ('send' in one ? [one.send] : []));
  let decisions: (Decision | Error)[] = [];
  try {
    failpoint('composed');
    if (sends.length > 0) decisions = await parts.commitAll(sends, isAtomic);
    failpoint('accepted');
    let next = 0;
    const results = prepared.map((one) => ('send' in one ? resultOf(decisions[next++]!, one.request) : one));
    if (isAtomic) throwFirst(results);
    return results;
  } catch (error) {
    decisions = [];
    throw asRefusal(error);
  } finally {
    let next = 0;
    for (const one of started) if (one) one.settle(committed(decisions[next++]));
  }
}

function committed(decision: Decision | Error | undefined): Decision | null {
  return decision === undefined || decision instanceof Error ? null : decision;
}

function resultOf(decision: Decision | Error, request: SendRequest): Accepted | Refusal {
  try {
    if (decision instanceof Error) throw decision;
    return answered(decision, request);
  } catch (error) {
    return refusalOf(error, request);
  }
}

function refusalOf(error: unknown, { recipients }: SendRequest): Refusal {
  const refusal = asRefusal(error);
  refusal.recipients = recipients.map(({ address }) => address);
  return refusal;
}

function throwFirst(list: unknown[]): void {
  for (const [index, one] of list.entries()) if (one instanceof Refusal) throw withIndex(one, index);
}

function withIndex(refusal: Refusal, index: number): Refusal {
  refusal.index = index;
  return refusal;
}
