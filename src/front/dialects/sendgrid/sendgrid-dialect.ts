/** SendGrid's API, version 3: https://www.twilio.com/docs/sendgrid/api-reference. Its SDKs send the key as a bearer token. */

import type { Dialect } from '#front/dialects/dialect.ts';
import { bearerKey } from '#front/http/authorize.ts';
import { writeSendgridError } from './sendgrid-errors.ts';
import { sendgridSendRoutes } from './sendgrid-send.ts';
import { sendgridSuppressionRoutes } from './sendgrid-suppressions.ts';

export const sendgrid: Dialect = {
  name: 'sendgrid',
  verify: ({ req }) => bearerKey(req.headers.authorization),
  routes: [...sendgridSendRoutes, ...sendgridSuppressionRoutes],
  claims: (_context, path) => /^\/v3\//.test(path),
  writeRefusal: writeSendgridError,
};
