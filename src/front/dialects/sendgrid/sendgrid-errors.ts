/** SendGrid's errors: a list, of which each has the path of its field. */
import type { Context } from 'koa';
import { answerTo } from '#front/dialects/refusals.ts';
import type { Refusal } from '#platform/values/refusal.ts';

export function writeSendgridError(context: Context, refusal: Refusal): void {
  const { code, issues, message, retryAfterMs } = refusal;
  context.status = answerTo('sendgrid', refusal);
  // SDKs in Go, PHP and Ruby wait until this time (ours is a number of seconds), and try again at once if it is in the past.
  if (retryAfterMs !== null)
    context.set('X-RateLimit-Reset', String(Math.ceil((Date.now() + retryAfterMs) / 1000)));
  const errors = issues.map((issue) => ({
    message: issue.message,
    field: issue.path.join('.') || null,
    help: null,
  }));
  const field = code.startsWith('DOMAIN_') ? 'from' : null;
  context.body = { errors: errors.length > 0 ? errors : [{ message, field, help: null }] };
}
