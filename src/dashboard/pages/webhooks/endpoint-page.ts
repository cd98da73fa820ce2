/** One webhook endpoint: its health, attempts, event types and secret. test-forms.ts posts tests and replays. */
import { z } from 'zod';
import { countMessages, listWebhookAttempts } from '../../../db/webhooks/webhook-attempts.ts';
import {
  activateWebhook,
  deleteWebhook,
  disableWebhook,
  findWebhook,
  setWebhookTypes,
  type Webhook,
} from '../../../db/webhooks/webhooks.ts';
import { disabledByOwner, rotateSecret } from '../../../webhooks/endpoints.ts';
import { checkForm, type Errors } from '../../forms.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  part,
  redirect,
  show,
} from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { pageOf } from '../../pagination.ts';
import { eventFields, groups } from './event-choice.ts';

export const webhookPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/webhooks/:id': (visit, parts) => page(visit, parts),
    'GET /dashboard/o/:org/webhooks/:id/attempts': async (visit, parts) =>
      part('webhooks/attempts', await attemptsData(visit, parts, await webhookIn(visit, parts))),
    'POST /dashboard/o/:org/webhooks/:id/events': setEvents,
    'POST /dashboard/o/:org/webhooks/:id/enable': enable,
    'POST /dashboard/o/:org/webhooks/:id/disable': disable,
    'POST /dashboard/o/:org/webhooks/:id/rotate': rotate,
    'POST /dashboard/o/:org/webhooks/:id/remove': remove,
  },
};

const pageSize = 25;

async function page(visit: OrgVisit, parts: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const webhook = await webhookIn(visit, parts);
  const isGiven = Object.keys(errors).length > 0;
  const data = {
    ...(await attemptsData(visit, parts, webhook)),
    groups,
    ticked: isGiven ? visit.form.getAll('events') : webhook.types,
    which: isGiven ? visit.form.get('which') : webhook.types.length === 0 ? 'all' : 'some',
    errors,
  };
  return show('webhooks/webhook', 'Webhook', data, { status: isGiven ? 422 : 200 });
}

/** Shared with the attempts part of the page. */
async function attemptsData(visit: OrgVisit, { db }: PageParts, webhook: Webhook) {
  const url = `${visit.base}/webhooks/${webhook.id}`;
  const attempts = await pageOf(visit, pageSize, (of) => listWebhookAttempts(db, webhook.id, of));
  const next = attempts.next && url + attempts.next.slice(attempts.next.indexOf('?'));
  const counts = await countMessages(db, webhook.id);
  // A healthy endpoint gets its events within moments, so the page updates itself until then.
  const isLive =
    counts.open > 0 && attempts.isFirst && webhook.status === 'active' && webhook.failingSince === null;
  return { ...attempts, ...counts, next, webhook, url, isLive };
}

async function setEvents(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { id } = await webhookIn(visit, parts);
  const checked = checkForm(visit.form, eventFields);
  if (!checked.ok) return page(visit, parts, checked.errors);
  await setWebhookTypes(parts.db, id, checked.values, visit.now);
  return redirect(`${visit.base}/webhooks/${id}`, 'The events were saved. The change applies to new events.');
}

async function enable(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { id } = await webhookIn(visit, parts);
  await activateWebhook(parts.db, id, visit.now);
  parts.eventSignal.notify();
  return redirect(
    `${visit.base}/webhooks/${id}`,
    'The endpoint is enabled and gets new events. Use Replay to post the events that it missed.',
  );
}

async function disable(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { id } = await webhookIn(visit, parts);
  await disableWebhook(parts.db, id, disabledByOwner, visit.now);
  return redirect(`${visit.base}/webhooks/${id}`, 'The endpoint is disabled. Nothing is posted to it.');
}

async function rotate(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const webhook = await webhookIn(visit, parts);
  const made = await rotateSecret(parts.db, webhook.id, { seal: parts.seal, now: visit.now });
  if (!made) throw notFound('webhook');
  return show('webhooks/secret', 'Webhooks', { webhook, ...made });
}

async function remove(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { id } = await webhookIn(visit, parts);
  await deleteWebhook(parts.db, id);
  return redirect(`${visit.base}/webhooks`, 'The endpoint and its waiting events were removed.');
}

/** Another organization's webhook is not found. */
export async function webhookIn({ context, org }: OrgVisit, { db }: PageParts): Promise<Webhook> {
  const { id } = context.params as { id: string };
  const webhook = z.guid().safeParse(id).success ? await findWebhook(db, id.toLowerCase(), org.id) : null;
  if (!webhook) throw notFound('webhook');
  return webhook;
}
