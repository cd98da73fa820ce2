/** SendGrid's API, version 3: https://www.twilio.com/docs/sendgrid/api-reference. Its SDKs send the key as a bearer token. */
import type { Context } from 'koa';
import type { Dialect } from '../dialect.ts';
import { writeSendgridError } from './sendgrid-errors.ts';
import { sendgridSendRoutes } from './sendgrid-send.ts';
import { sendgridSuppressionRoutes } from './sendgrid-suppressions.ts';

export const sendgrid: Dialect = {
  name: 'sendgrid',
  apiKeyOf: (context: Context) => /^Bearer +(\S+)$/i.exec(context.get('authorization'))?.[1] ?? null,
  routes: [...sendgridSendRoutes, ...sendgridSuppressionRoutes],
  claims: (_context, path) => /^\/v3\//.test(path),
  writeRefusal: writeSendgridError,
};
