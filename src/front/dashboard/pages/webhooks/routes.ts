/** The list of webhook endpoints, and adding one. Its secret is shown once. endpoint-page.ts shows one endpoint. */
import { z } from 'zod';
import { asProblem, showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors } from '#front/dashboard/forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, show } from '#front/dashboard/page.ts';
import { parseWebhookUrl } from '#mail/webhooks/endpoint-url.ts';
import { addWebhook } from '#mail/webhooks/endpoints.ts';
import { listWebhooks } from '#mail/webhooks/rows/webhooks.ts';
import { webhookFormats } from '#mail/webhooks/subscribed-types.ts';
import { capital } from '#platform/base/capital.ts';
import { eventFields, groups } from './event-choice.ts';
import { withReason } from './find-endpoint.ts';

const formatName = z.enum(webhookFormats).default('standard').catch('standard');

export const webhooksPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/webhooks': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/webhooks'(visit, parts) {
      const { db, seal, allowPrivate } = parts;
      const { org, form, now } = visit;
      const format = formatName.parse(form.get('format') ?? undefined);
      const url = (form.get('url') ?? '').trim();
      const parsed = parseWebhookUrl(url, allowPrivate, format);
      const events = checkForm(form, eventFields);
      const isThere = (await listWebhooks(db, org.id)).some((one) => one.url === url);
      const fault =
        'problem' in parsed ? sentence(parsed.problem) : isThere ? 'This endpoint was added before.' : null;
      if (!events.ok || fault !== null)
        return list(visit, parts, {
          ...(fault !== null && { url: fault }),
          ...(!events.ok && events.errors),
        });
      const request = { orgId: org.id, url, types: events.values, format };
      const terms = { seal, allowPrivate, now, requestedBy: 'owner' as const };
      const added = await addWebhook(db, request, terms).catch(asProblem);
      if ('problem' in added) return list(visit, parts, { url: added.problem });
      return show('webhooks/secret', 'Webhooks', { ...added, isNew: true, oldSecretUntil: null });
    },
  },
};

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const webhooks = (await listWebhooks(db, visit.org.id)).map(withReason);
  const data = { webhooks, groups, ticked: visit.form.getAll('events') };
  return showForm('webhooks/webhooks', 'Webhooks', visit, data, errors);
}

function sentence(text: string): string {
  return `${capital(text)}.`;
}
