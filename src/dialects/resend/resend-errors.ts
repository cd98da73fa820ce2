/** Resend's errors. Its SDKs look for the status and the name in the body: Ruby's and Python's read no other status. */
import type { Context } from 'koa';
import { KeyReused, type Refusal, type RefusalCode } from '../../mail/refusal.ts';
import { InvalidKey } from '../dialect-send.ts';

interface ResendError {
  status: number;
  /** One of those that PHP's SDK knows. */
  name: string;
}

const errors: Record<RefusalCode, ResendError> = {
  VALIDATION_ERROR: { status: 422, name: 'validation_error' },
  BAD_REQUEST: { status: 400, name: 'validation_error' },
  UNAUTHORIZED: { status: 403, name: 'invalid_api_key' },
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

/** Those of a field, by its name. */
const fieldErrors: Record<string, string> = {
  from: 'invalid_from_address',
  attachments: 'invalid_attachment',
};

export function writeResendError(context: Context, refusal: Refusal): void {
  const { status, name } = errorOf(context, refusal);
  const at = refusal.index === null ? '' : `emails.${refusal.index}: `;
  context.status = status;
  context.body = { statusCode: status, name, message: `${at}${resendMessage(refusal)}` };
  // The names under which the SDKs for Go and Ruby read the limit.
  for (const one of ['Limit', 'Remaining', 'Reset'])
    context.set(`RateLimit-${one}`, context.response.get(`X-RateLimit-${one}`));
}

function errorOf(context: Context, refusal: Refusal): ResendError {
  const { code, issues } = refusal;
  if (context.response.get('Allow')) return { status: 405, name: 'method_not_allowed' };
  if (code === 'UNAUTHORIZED' && !context.state.apiKey) return { status: 401, name: 'missing_api_key' };
  if (refusal instanceof KeyReused) return { status: 409, name: 'invalid_idempotent_request' };
  if (refusal instanceof InvalidKey) return { status: 400, name: 'invalid_idempotency_key' };
  if (issues.length === 0) return errors[code];
  const isMissing = issues.every(({ received, path }) => received === 'undefined' && path.length === 1);
  const [field] = issues[0]!.path;
  return {
    status: 422,
    name: isMissing ? 'missing_required_field' : (fieldErrors[field!] ?? errors[code].name),
  };
}

/** The fields that are wrong, because SDKs show nothing but the message. */
export function resendMessage({ issues, message }: Refusal): string {
  return issues.length === 0 ? message : issues.map((issue) => issue.message).join('; ');
}
