/** Postmark's API: https://postmarkapp.com/developer/api/overview. Its SDKs send the key in a header of its own. */
import type { Context } from 'koa';
import type { Dialect } from '#front/dialects/dialect.ts';
import { apiKey, type Credential } from '#front/http/authorize.ts';
import { postmarkBounceRoutes } from './postmark-bounces.ts';
import { postmarkDomainRoutes } from './postmark-domains.ts';
import { writePostmarkError } from './postmark-errors.ts';
import { postmarkInboundRoutes } from './postmark-inbound.ts';
import { postmarkMessageRoutes } from './postmark-messages.ts';
import { postmarkSendRoutes } from './postmark-send.ts';
import { postmarkStreamRoutes } from './postmark-stream.ts';
import { postmarkSuppressionRoutes } from './postmark-suppressions.ts';
import { postmarkWebhookRoutes } from './postmark-webhooks.ts';

function verify(context: Context): Credential | null {
  const key = context.get('x-postmark-server-token').trim() || context.get('x-postmark-account-token').trim();
  return key === '' ? null : apiKey(key);
}

export const postmark: Dialect = {
  name: 'postmark',
  verify,
  routes: [
    ...postmarkSendRoutes,
    ...postmarkMessageRoutes,
    ...postmarkInboundRoutes,
    ...postmarkBounceRoutes,
    ...postmarkStreamRoutes,
    ...postmarkSuppressionRoutes,
    ...postmarkWebhookRoutes,
    ...postmarkDomainRoutes,
  ],
  claims: (context) => verify(context) !== null,
  writeRefusal: writePostmarkError,
};
