/** Mailgun's errors: a message, and the status of the response. Its SDKs know a wrong key by the text `Forbidden`. */
import type { Context } from 'koa';
import { answerTo, messageOf } from '#front/dialects/refusals.ts';
import type { Refusal } from '#platform/values/refusal.ts';

export function writeMailgunError(context: Context, refusal: Refusal): void {
  context.status = answerTo('mailgun', refusal);
  context.body = { message: messageOf(refusal) };
  if (context.status !== 401) return;
  context.set('WWW-Authenticate', 'Basic realm="MG API"');
  context.type = 'text/plain';
  context.body = 'Forbidden';
}
