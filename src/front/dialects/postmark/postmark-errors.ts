/**
 * Postmark's errors: https://postmarkapp.com/developer/api/overview#error-codes. Its SDKs read the sentence of an inactive
 * address.
 */
import type { Context } from 'koa';
import { answerTo, messageOf } from '#front/dialects/refusals.ts';
import { Refusal } from '#platform/values/refusal.ts';

export function writePostmarkError(context: Context, refusal: Refusal): void {
  [context.status] = answerTo('postmark', refusal);
  context.body =
    refusal.reason === 'API_KEY_MISSING'
      ? { ErrorCode: 10, Message: 'The header X-Postmark-Server-Token is missing. Put an API key there.' }
      : postmarkError(refusal);
}

export function postmarkError(refusal: Refusal, batch = 1): { ErrorCode: number; Message: string } {
  const [, ErrorCode] = answerTo('postmark', refusal);
  return { ErrorCode, Message: messageOf(refusal, batch) };
}

/** The words that SDKs take the addresses from. */
function foundInactive(addresses: string[]): string {
  return `Found inactive addresses: ${addresses.join(', ')}. Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a manual suppression.`;
}

export function allInactive(addresses: string[]): Refusal {
  return new Refusal(
    'ALL_RECIPIENTS_SUPPRESSED',
    `You tried to send to recipient(s) that have been marked as inactive. ${foundInactive(addresses)}`,
  );
}

/** The words for an email that others get: those that both Postmark's SDKs and Anymail read. */
export function someInactive(addresses: string[]): string {
  return `Message OK, but will not deliver to some recipients. ${foundInactive(addresses)}`;
}
