/** Postmark's errors: https://postmarkapp.com/developer/api/overview#error-codes. Its SDKs read the sentence of an inactive address. */
import type { Context } from 'koa';
import { Refusal, type RefusalCode } from '../../mail/refusal.ts';

const errors: Record<RefusalCode, { status: number; ErrorCode: number }> = {
  VALIDATION_ERROR: { status: 422, ErrorCode: 300 },
  BAD_REQUEST: { status: 422, ErrorCode: 300 },
  UNAUTHORIZED: { status: 401, ErrorCode: 10 },
  INSUFFICIENT_CREDITS: { status: 422, ErrorCode: 405 },
  FORBIDDEN: { status: 401, ErrorCode: 10 },
  DOMAIN_NOT_ALLOWED: { status: 422, ErrorCode: 400 },
  DOMAIN_NOT_FOUND: { status: 422, ErrorCode: 400 },
  DOMAIN_NOT_VERIFIED: { status: 422, ErrorCode: 401 },
  NOT_FOUND: { status: 404, ErrorCode: 701 },
  ALL_RECIPIENTS_SUPPRESSED: { status: 422, ErrorCode: 406 },
  RATE_LIMIT_EXCEEDED: { status: 429, ErrorCode: 429 },
  SEND_FAILED: { status: 500, ErrorCode: 500 },
};

export function writePostmarkError(context: Context, refusal: Refusal): void {
  context.status = errors[refusal.code].status;
  context.body =
    refusal.code === 'UNAUTHORIZED' && !context.state.apiKey
      ? { ErrorCode: 10, Message: 'The header X-Postmark-Server-Token is missing. Put an API key there.' }
      : postmarkError(refusal);
}

/** The fields that are wrong, because SDKs show nothing but the message. */
export function postmarkError({ code, issues, message }: Refusal): { ErrorCode: number; Message: string } {
  const Message = issues.length === 0 ? message : issues.map((issue) => issue.message).join('; ');
  return { ErrorCode: errors[code].ErrorCode, Message };
}

const inactive =
  'Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a manual suppression.';

/** The words that SDKs take the addresses from. */
export function allInactive(addresses: string[]): Refusal {
  return new Refusal(
    'ALL_RECIPIENTS_SUPPRESSED',
    `You tried to send to recipient(s) that have been marked as inactive. Found inactive addresses: ${addresses.join(', ')}. ${inactive}`,
  );
}

/** The words for an email that others get. */
export function someInactive(addresses: string[]): string {
  return `Message OK, but will not deliver to these inactive addresses: ${addresses.join(', ')}. ${inactive}`;
}
