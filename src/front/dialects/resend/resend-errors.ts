/** Resend's errors. Its SDKs look for the status and the name in the body: Ruby's and Python's read no other status. */
import type { Context } from 'koa';
import { answerTo, messageOf } from '#front/dialects/refusals.ts';
import type { Refusal } from '#platform/values/refusal.ts';

/** Errors of a field, by its name. */
const fieldErrors: Record<string, string> = {
  from: 'invalid_from_address',
  attachments: 'invalid_attachment',
};

export function writeResendError(context: Context, refusal: Refusal): void {
  const [statusCode, name] = errorOf(context, refusal);
  const at = refusal.index === null ? '' : `emails.${refusal.index}: `;
  context.status = statusCode;
  context.body = { statusCode, name, message: `${at}${messageOf(refusal)}` };
  // The names under which the SDKs for Go and Ruby read the limit.
  for (const one of ['Limit', 'Remaining', 'Reset'])
    context.set(`RateLimit-${one}`, context.response.get(`X-RateLimit-${one}`));
}

/** The names are among those that PHP's SDK knows. */
function errorOf(context: Context, refusal: Refusal): [status: number, name: string] {
  const { issues } = refusal;
  if (context.response.get('Allow')) return [405, 'method_not_allowed'];
  const [status, name] = answerTo('resend', refusal);
  if (issues.length === 0) return [status, name];
  const isMissing = issues.every(({ received, path }) => received === 'undefined' && path.length === 1);
  const [field] = issues[0]!.path;
  return [422, isMissing ? 'missing_required_field' : (fieldErrors[field!] ?? name)];
}
