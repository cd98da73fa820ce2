/** The endpoint in the path of a page, and why it is disabled in words for its owner. */

import { itemIn } from '#front/dashboard/form-page.ts';
import type { OrgVisit, PageParts } from '#front/dashboard/page.ts';
import { disabledByOwner } from '#mail/webhooks/endpoint-health.ts';
import { findWebhook, type Webhook } from '#mail/webhooks/rows/webhooks.ts';

export function webhookIn(visit: OrgVisit, db: PageParts['db']): Promise<Webhook> {
  return itemIn(visit, 'webhook', (id, orgId) => findWebhook(db, id, orgId));
}

export function withReason<T extends Pick<Webhook, 'reason'>>(webhook: T): T {
  return webhook.reason === disabledByOwner ? { ...webhook, reason: 'Disabled by hand' } : webhook;
}
