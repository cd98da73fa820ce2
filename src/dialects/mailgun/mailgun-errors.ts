/** Mailgun's errors: a message, and the status of the response. Its SDKs know a wrong key by the text `Forbidden`. */
import type { Context } from 'koa';
import { type Refusal, type RefusalCode, statusOf } from '../../mail/refusal.ts';

const statuses: Partial<Record<RefusalCode, number>> = {
  DOMAIN_NOT_FOUND: 404,
  ALL_RECIPIENTS_SUPPRESSED: 400,
};

export function writeMailgunError(context: Context, { code, message, issues }: Refusal): void {
  context.status = statuses[code] ?? statusOf[code];
  if (code === 'UNAUTHORIZED') {
    context.set('WWW-Authenticate', 'Basic realm="MG API"');
    context.type = 'text/plain';
    context.body = 'Forbidden';
    return;
  }
  context.body = {
    message: issues.length === 0 ? message : issues.map((issue) => issue.message).join('; '),
  };
}
