/** Postmark's API: https://postmarkapp.com/developer/api/overview. Its SDKs send the key in a header of its own. */
import type { Context } from 'koa';
import type { Dialect } from '../dialect.ts';
import { postmarkBounceRoutes } from './postmark-bounces.ts';
import { postmarkDomainRoutes } from './postmark-domains.ts';
import { writePostmarkError } from './postmark-errors.ts';
import { postmarkMessageRoutes } from './postmark-messages.ts';
import { postmarkSendRoutes } from './postmark-send.ts';
import { postmarkSuppressionRoutes } from './postmark-suppressions.ts';
import { postmarkWebhookRoutes } from './postmark-webhooks.ts';

const apiKeyOf = (context: Context) =>
  context.get('x-postmark-server-token').trim() || context.get('x-postmark-account-token').trim() || null;

export const postmark: Dialect = {
  name: 'postmark',
  apiKeyOf,
  routes: [
    ...postmarkSendRoutes,
    ...postmarkMessageRoutes,
    ...postmarkBounceRoutes,
    ...postmarkSuppressionRoutes,
    ...postmarkWebhookRoutes,
    ...postmarkDomainRoutes,
  ],
  claims: (context) => apiKeyOf(context) !== null,
  writeRefusal: writePostmarkError,
};
