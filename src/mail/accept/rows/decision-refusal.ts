/** What a decision about a send says: its answer, or the refusal (docs/design.md section 2.1, steps 11 to 14). */

import type { HeldGroup } from '#platform/database/tables/mail-group.ts';
import type { SendAnswerRecord } from '#platform/database/tables/send-record.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { Decision } from './acceptance.ts';

/** `list`: the recipients that decide about suppression, as words for the message: empty, or " in to". */
export function refusalOf(decision: Exclude<Decision, { answer: SendAnswerRecord }>, list: string): Refusal {
  switch (decision.refused) {
    case 'ALL_RECIPIENTS_SUPPRESSED':
      return new Refusal(decision.refused, `Every recipient${list} is on the suppression list.`);
    case 'INSUFFICIENT_CREDITS':
      return new Refusal(decision.refused, 'Neither the quota nor the wallet has credits left.');
    case 'CREDITS_FOR_SOME': {
      const message = `The email needs ${decision.needed} credits, and the balance is ${decision.left}. Nothing was sent.`;
      return new Refusal('INSUFFICIENT_CREDITS', message);
    }
    case 'KEY_REUSED':
      return new Refusal(
        'BAD_REQUEST',
        'This idempotency key was used for a different request. Use a new key for each request.',
        { reason: 'IDEMPOTENCY_KEY_REUSED' },
      );
    case 'DAILY_CAPACITY': {
      const whose =
        decision.stream === undefined
          ? "the organization's limit"
          : `the limit of the stream ${decision.stream},`;
      const message = `This email would exceed ${whose} of ${decision.limit} recipients a day, counted from 00:00 UTC.`;
      return new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: decision.retryAfterMs });
    }
  }
}

/**
 * The answer to a new send or to one that repeats another; neither if it was refused, or null, because it failed. Mail with
 * `heldBy` has no lease.
 */
export function answerIn(decision: Decision | null): {
  made?: SendAnswerRecord;
  heldBy?: HeldGroup | undefined;
  repeated?: SendAnswerRecord;
} {
  if (decision === null || 'refused' in decision) return {};
  const { answer, replayed, heldBy } = decision;
  return replayed ? { repeated: answer } : { made: answer, heldBy };
}
