/** One webhook endpoint: its events, or its settings. test-forms.ts posts tests and replays. */

import { showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors } from '#front/dashboard/forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect, show } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { changeWebhook, rotateSecret } from '#mail/webhooks/endpoints.ts';
import { formatOf } from '#mail/webhooks/formats/all-formats.ts';
import { deleteWebhook } from '#mail/webhooks/rows/webhooks.ts';
import { eventsData } from './endpoint-events.ts';
import { eventFields, groups } from './event-choice.ts';
import { webhookIn, withReason } from './find-endpoint.ts';

export const webhookPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/webhooks/:id': (visit, parts) => page(visit, parts),
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

async function page(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const webhook = await webhookIn(visit, db);
  const isGiven = Object.keys(errors).length > 0;
  const isSettings = visit.may('developer') && (isGiven || visit.query.get('tab') === 'settings');
  const data = {
    webhook: withReason(webhook),
    isSettings,
    url: `${visit.base}/webhooks/${webhook.id}`,
    ...(isSettings
      ? {
          groups,
          signsWithBoth: formatOf(webhook.format).hasSeveralSignatures,
          ticked: isGiven ? visit.form.getAll('events') : webhook.types,
          which: isGiven ? visit.form.get('which') : webhook.types.length === 0 ? 'all' : 'some',
        }
      : await eventsData(visit, db, webhook)),
  };
  return { ...showForm('webhooks/webhook', 'Webhook', visit, data, errors), scripts: ['live.js'] };
}

async function change(
  visit: OrgVisit,
  { db, eventSignal }: PageParts,
  changes: Parameters<typeof changeWebhook>[2],
  flash: string,
) {
  const webhook = await webhookIn(visit, db);
  await changeWebhook({ db, now: visit.now, eventSignal }, webhook, changes);
  return redirect(`${visit.base}/webhooks/${webhook.id}?tab=settings`, flash);
}
