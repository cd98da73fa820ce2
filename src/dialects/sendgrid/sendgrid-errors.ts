/** SendGrid's errors: a list, of which each has the path of its field. */
import type { Context } from 'koa';
import { largestBody } from '../../api/request-body.ts';
import type { Refusal, RefusalCode } from '../../mail/refusal.ts';

const statuses: Record<RefusalCode, number> = {
  VALIDATION_ERROR: 400,
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  INSUFFICIENT_CREDITS: 401,
  FORBIDDEN: 403,
  DOMAIN_NOT_ALLOWED: 403,
  DOMAIN_NOT_FOUND: 403,
  DOMAIN_NOT_VERIFIED: 403,
  NOT_FOUND: 404,
  ALL_RECIPIENTS_SUPPRESSED: 400,
  RATE_LIMIT_EXCEEDED: 429,
  SEND_FAILED: 500,
};

const fields: Partial<Record<RefusalCode, string>> = {
  DOMAIN_NOT_ALLOWED: 'from',
  DOMAIN_NOT_FOUND: 'from',
  DOMAIN_NOT_VERIFIED: 'from',
  ALL_RECIPIENTS_SUPPRESSED: 'personalizations',
};

export function writeSendgridError(context: Context, { code, issues, message }: Refusal): void {
  const isTooLarge = code === 'BAD_REQUEST' && Number(context.get('content-length')) > largestBody;
  context.status = isTooLarge ? 413 : statuses[code];
  const errors = issues.map((issue) => ({
    message: issue.message,
    field: issue.path.join('.') || null,
    help: null,
  }));
  context.body = {
    errors: errors.length > 0 ? errors : [{ message, field: fields[code] ?? null, help: null }],
  };
}
