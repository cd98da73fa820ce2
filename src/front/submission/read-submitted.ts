/**
 * Reads a submitted message as a send request: a large one on a thread with a deadline, because its sender has chosen its content
 * and the main thread serves all clients. A message that ends the thread is refused.
 */
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { bufferOf } from '#platform/base/guarded-thread.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { requestOf, type Submitted } from './send-request.ts';

export type ReadSubmitted = (orgId: string, raw: Buffer, submitted: Submitted) => Promise<SendRequest>;

/** Can be sent from one thread to another, which an error of a class of ours cannot. */
export type SubmittedResult =
  | { request: SendRequest }
  | { refusal: Pick<Refusal, 'code' | 'message' | 'issues'> };

/** The worst message of this size takes some milliseconds; to send one to another thread and back costs a tenth of one. */
const maxOnMain = 256 * 1024;

/** `onThread` resolves to null if the message has ended the thread. */
export function createReadSubmitted(
  onThread: (orgId: string, raw: Buffer, submitted: Submitted) => Promise<SubmittedResult | null>,
): ReadSubmitted {
  return async (orgId, raw, submitted) => {
    if (raw.length <= maxOnMain) return requestOf(raw, submitted);
    const result = await onThread(orgId, raw, submitted);
    if (result === null) throw new Refusal('BAD_REQUEST', tooHard);
    if ('request' in result) return withBuffer(result.request);
    const { code, message, issues } = result.refusal;
    throw new Refusal(code, message, { issues });
  };
}

const tooHard = 'the message takes too long to read; make its structure simpler';

/** The thread's side. */
export function submittedResult(raw: Buffer, submitted: Submitted): SubmittedResult {
  try {
    return { request: requestOf(raw, submitted) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { code, message, issues } = error;
    return { refusal: { code, message, issues } };
  }
}

function withBuffer(request: SendRequest): SendRequest {
  const { raw, ...rest } = request.rawMessage!;
  return { ...request, rawMessage: { ...rest, raw: bufferOf(raw) } };
}
