/**
 * Mailgun's API: https://documentation.mailgun.com/docs/mailgun/api-reference. Its clients send the key as the password of
 * `api`.
 */
import type { Context } from 'koa';
import type { Dialect } from '#front/dialects/dialect.ts';
import { answerTo, messageOf } from '#front/dialects/refusals.ts';
import { apiKey, type Credential } from '#front/http/authorize.ts';
import type { Refusal } from '#platform/values/refusal.ts';
import { listEvents } from './mailgun-events.ts';
import { messageBody, send } from './mailgun-messages.ts';
import { mimeBody, sendMime } from './mailgun-mime.ts';
import { mailgunSuppressionRoutes } from './mailgun-suppressions.ts';

export const mailgun: Dialect = {
  name: 'mailgun',
  verify,
  routes: [
    { route: 'POST /v3/:domain/messages', grant: 'email:send', body: messageBody, respond: send },
    { route: 'POST /v3/:domain/messages.mime', grant: 'email:send', body: mimeBody, respond: sendMime },
    { route: 'GET /v3/:domain/events{/:page}', grant: 'email:read', respond: listEvents },
    ...mailgunSuppressionRoutes,
  ],
  claims: (_context, path) => /^\/v\d\//.test(path),
  writeRefusal,
};

function verify(context: Context): Credential | null {
  const credentials = /^Basic +([\w+/=-]+)$/i.exec(context.get('authorization'))?.[1] ?? '';
  const key = /^api:(\S+)\s*$/.exec(Buffer.from(credentials, 'base64').toString())?.[1];
  return key === undefined ? null : apiKey(key);
}

/** A message. Mailgun's SDKs know a wrong key by the text `Forbidden`. */
function writeRefusal(context: Context, refusal: Refusal): void {
  context.status = answerTo('mailgun', refusal);
  context.body = { message: messageOf(refusal) };
  if (context.status !== 401) return;
  context.set('WWW-Authenticate', 'Basic realm="MG API"');
  context.type = 'text/plain';
  context.body = 'Forbidden';
}
