/** SendGrid's API, version 3: https://www.twilio.com/docs/sendgrid/api-reference. Its SDKs send the key as a bearer token. */
import type { Context } from 'koa';
import type { Dialect } from '#front/dialects/dialect.ts';
import { answerTo } from '#front/dialects/refusals.ts';
import { bearerKey } from '#front/http/authorize.ts';
import type { Refusal } from '#platform/values/refusal.ts';
import { sendgridGroupRoutes } from './sendgrid-groups.ts';
import { sendgridSendRoutes } from './sendgrid-send.ts';
import { sendgridSuppressionRoutes } from './sendgrid-suppressions.ts';

export const sendgrid: Dialect = {
  name: 'sendgrid',
  verify: ({ req }) => bearerKey(req.headers.authorization),
  routes: [...sendgridSendRoutes, ...sendgridGroupRoutes, ...sendgridSuppressionRoutes],
  claims: (_context, path) => /^\/v3\//.test(path),
  writeRefusal,
};

/** A list of errors, of which each has the path of its field. */
function writeRefusal(context: Context, refusal: Refusal): void {
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
