/** Resend's API: https://resend.com/docs/api-reference. Its SDKs send the key as a bearer token. */

import type { Dialect } from '#front/dialects/dialect.ts';
import { bearerKey } from '#front/http/authorize.ts';
import { resendAttachmentRoutes, resendOpenRoutes } from './resend-attachments.ts';
import { resendEmailRoutes } from './resend-emails.ts';
import { writeResendError } from './resend-errors.ts';
import { resendReceivingRoutes } from './resend-receiving.ts';
import { resendSetUpRoutes } from './resend-set-up.ts';
import { resendSuppressionRoutes } from './resend-suppressions.ts';
import { resendWebhookRoutes } from './resend-webhooks.ts';

/** Its paths begin with nothing in common, and its key is where ours is. */
const resources =
  /^\/(api-keys|audiences|automations|broadcasts|contact-properties|contacts|domains|emails|events|inboxes|logs|oauth|segments|suppressions|templates|topics|usage|webhooks)(\/|$)/;

export const resend: Dialect = {
  name: 'resend',
  verify: ({ req }) => bearerKey(req.headers.authorization),
  routes: [
    ...resendReceivingRoutes,
    ...resendEmailRoutes,
    ...resendAttachmentRoutes,
    ...resendSetUpRoutes,
    ...resendSuppressionRoutes,
    ...resendWebhookRoutes,
  ],
  openRoutes: resendOpenRoutes,
  claims: (context, path) => resources.test(path) || /^resend-/i.test(context.get('user-agent')),
  writeRefusal: writeResendError,
};
