/** SendGrid's API, version 3: https://www.twilio.com/docs/sendgrid/api-reference. Its SDKs send the key as a bearer token. */
import type { Context } from 'koa';
import type { Dialect } from '../dialect.ts';
import { writeSendgridError } from './sendgrid-errors.ts';
import { sendgridSendRoutes } from './sendgrid-send.ts';
import { sendgridSuppressionRoutes } from './sendgrid-suppressions.ts';

export const sendgrid: Dialect = {
  name: 'sendgrid',
  keyOf: (context: Context) => /^Bearer +(\S+)$/i.exec(context.get('authorization'))?.[1] ?? null,
  routes: [...sendgridSendRoutes, ...sendgridSuppressionRoutes],
  // By name, because another service has its domains below /v3.
  missing: [
    'access_settings',
    'alerts',
    'api_keys',
    'asm',
    'categories',
    'contactdb',
    'designs',
    'mail',
    'mail_settings',
    'marketing',
    'messages',
    'partner_settings',
    'scopes',
    'senders',
    'stats',
    'subusers',
    'suppression',
    'teammates',
    'templates',
    'tracking_settings',
    'user',
    'validations',
    'verified_senders',
    'whitelabel',
  ].map((path) => `/v3/${path}{/*rest}`),
  writeRefusal: writeSendgridError,
};
