/** Resend's errors. Its SDKs look for the status and the name in the body: Ruby's and Python's read no other status. */
import type { Context } from 'koa';
import type { Refusal, RefusalCode } from '../../mail/refusal.ts';

const errors: Record<RefusalCode, { status: number; name: string }> = {
  VALIDATION_ERROR: { status: 422, name: 'validation_error' },
  BAD_REQUEST: { status: 400, name: 'validation_error' },
  UNAUTHORIZED: { status: 401, name: 'missing_api_key' },
  INSUFFICIENT_CREDITS: { status: 429, name: 'monthly_quota_exceeded' },
  FORBIDDEN: { status: 401, name: 'restricted_api_key' },
  DOMAIN_NOT_ALLOWED: { status: 403, name: 'validation_error' },
  DOMAIN_NOT_FOUND: { status: 403, name: 'validation_error' },
  DOMAIN_NOT_VERIFIED: { status: 403, name: 'validation_error' },
  NOT_FOUND: { status: 404, name: 'not_found' },
  ALL_RECIPIENTS_SUPPRESSED: { status: 422, name: 'validation_error' },
  RATE_LIMIT_EXCEEDED: { status: 429, name: 'rate_limit_exceeded' },
  SEND_FAILED: { status: 500, name: 'internal_server_error' },
};

export function writeResendError(context: Context, refusal: Refusal): void {
  const { status, name } = errorOf(context, refusal);
  context.status = status;
  context.body = { statusCode: status, name, message: messageOf(refusal) };
}

function errorOf(context: Context, { code, issues }: Refusal): { status: number; name: string } {
  if (code === 'UNAUTHORIZED' && context.state.apiKey) return { status: 403, name: 'invalid_api_key' };
  const isMissing = issues.length > 0 && issues.every(({ received }) => received === 'undefined');
  return isMissing ? { status: 422, name: 'missing_required_field' } : errors[code];
}

/** The fields that are wrong, because SDKs show nothing but the message. */
function messageOf({ issues, message }: Refusal): string {
  return issues.length === 0 ? message : issues.map((issue) => issue.message).join('; ');
}
