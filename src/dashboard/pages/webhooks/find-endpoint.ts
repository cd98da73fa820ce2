/** The endpoint in the path of a page. */
import { findWebhook, type Webhook } from '../../../db/webhooks/webhooks.ts';
import { itemIn } from '../../form-page.ts';
import type { OrgVisit, PageParts } from '../../page.ts';

export function webhookIn(visit: OrgVisit, db: PageParts['db']): Promise<Webhook> {
  return itemIn(visit, 'webhook', (id, orgId) => findWebhook(db, id, orgId));
}
