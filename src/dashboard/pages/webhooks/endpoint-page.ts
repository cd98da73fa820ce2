/** One webhook endpoint: its health, attempts, event types and secret. test-forms.ts posts tests and replays. */
import { countMessages, listWebhookAttempts } from '../../../db/webhooks/webhook-attempts.ts';
import { deleteWebhook, findWebhook, type Webhook } from '../../../db/webhooks/webhooks.ts';
import { changeWebhook, rotateSecret } from '../../../webhooks/endpoints.ts';
import { formatOf } from '../../../webhooks/formats/all-formats.ts';
import { itemIn, showForm } from '../../form-page.ts';
import { checkForm, type Errors } from '../../forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, part, redirect, show } from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { pageOf } from '../../pagination.ts';
import { eventFields, groups } from './event-choice.ts';

export const webhookPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/webhooks/:id': (visit, parts) => page(visit, parts),
    'GET /dashboard/o/:org/webhooks/:id/attempts': async (visit, { db }) =>
      part('webhooks/attempts', await attemptsData(visit, db, await webhookIn(visit, db))),
    async 'POST /dashboard/o/:org/webhooks/:id/events'(visit, parts) {
      const checked = checkForm(visit.form, eventFields);
      if (!checked.ok) return page(visit, parts, checked.errors);
      const flash = 'The events were saved. The change applies to new events.';
      return change(visit, parts, { types: checked.values }, flash);
    },
    'POST /dashboard/o/:org/webhooks/:id/enable': (visit, parts) =>
      change(
        visit,
        parts,
        { enabled: true },
        'The endpoint is enabled and gets new events. Use Replay to post the events that it missed.',
      ),
    'POST /dashboard/o/:org/webhooks/:id/disable': (visit, parts) =>
      change(visit, parts, { enabled: false }, 'The endpoint is disabled. Nothing is posted to it.'),
    async 'POST /dashboard/o/:org/webhooks/:id/rotate'(visit, { db, seal }) {
      const webhook = await webhookIn(visit, db);
      const made = await rotateSecret(db, webhook, { seal, now: visit.now });
      if (!made) throw notFound('webhook');
      return show('webhooks/secret', 'Webhooks', {
        ...made,
        webhook: { ...webhook, publicKey: made.publicKey },
      });
    },
    async 'POST /dashboard/o/:org/webhooks/:id/remove'(visit, { db }) {
      const { id } = await webhookIn(visit, db);
      await deleteWebhook(db, id);
      return redirect(`${visit.base}/webhooks`, 'The endpoint and its waiting events were removed.');
    },
  },
};

const pageSize = 25;

async function page(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const webhook = await webhookIn(visit, db);
  const isGiven = Object.keys(errors).length > 0;
  const data = {
    ...(await attemptsData(visit, db, webhook)),
    groups,
    signsWithBoth: formatOf(webhook.format).hasSeveralSignatures,
    ticked: isGiven ? visit.form.getAll('events') : webhook.types,
    which: isGiven ? visit.form.get('which') : webhook.types.length === 0 ? 'all' : 'some',
  };
  return showForm('webhooks/webhook', 'Webhook', visit, data, errors);
}

/** Shared with the attempts part of the page. */
async function attemptsData(visit: OrgVisit, db: PageParts['db'], webhook: Webhook) {
  const url = `${visit.base}/webhooks/${webhook.id}`;
  const attempts = await pageOf(visit, pageSize, (of) => listWebhookAttempts(db, webhook.id, of));
  const next = attempts.next && url + attempts.next.slice(attempts.next.indexOf('?'));
  const counts = await countMessages(db, webhook.id);
  // A healthy endpoint gets its events within moments, so the page updates itself until then.
  const isLive =
    counts.open > 0 && attempts.isFirst && webhook.status === 'active' && webhook.failingSince === null;
  return { ...attempts, ...counts, next, webhook, url, isLive };
}

async function change(
  visit: OrgVisit,
  { db, eventSignal }: PageParts,
  changes: Parameters<typeof changeWebhook>[2],
  flash: string,
) {
  const webhook = await webhookIn(visit, db);
  await changeWebhook({ db, now: visit.now, eventSignal }, webhook, changes);
  return redirect(`${visit.base}/webhooks/${webhook.id}`, flash);
}

export function webhookIn(visit: OrgVisit, db: PageParts['db']): Promise<Webhook> {
  return itemIn(visit, 'webhook', (id, orgId) => findWebhook(db, id, orgId));
}
