/** SendGrid's errors: a list, of which each has the path of its field. */
import type { Context } from 'koa';
import type { Refusal } from '../../mail/refusal.ts';
import { answerTo } from '../refusals.ts';

export function writeSendgridError(context: Context, refusal: Refusal): void {
  const { code, issues, message } = refusal;
  context.status = answerTo('sendgrid', refusal);
  const errors = issues.map((issue) => ({
    message: issue.message,
    field: issue.path.join('.') || null,
    help: null,
  }));
  const field = code.startsWith('DOMAIN_') ? 'from' : null;
  context.body = { errors: errors.length > 0 ? errors : [{ message, field, help: null }] };
}
