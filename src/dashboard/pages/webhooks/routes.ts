/** The list of webhook endpoints, and adding one. Its secret is shown once. endpoint-page.ts shows one endpoint. */
import { listWebhooks } from '../../../db/webhooks/webhooks.ts';
import { parseWebhookUrl } from '../../../webhooks/endpoint-url.ts';
import { addOwnWebhook } from '../../../webhooks/endpoints.ts';
import { checkForm, type Errors, valuesOf } from '../../forms.ts';
import { type DashboardPage, type OrgVisit, type PageAnswer, type PageParts, show } from '../../page.ts';
import { eventFields, groups } from './event-choice.ts';

export const webhooksPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/webhooks': (visit, parts) => list(visit, parts),
    'POST /dashboard/o/:org/webhooks': add,
  },
};

async function list({ org, form }: OrgVisit, { db }: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const webhooks = await listWebhooks(db, org.id);
  const data = { webhooks, groups, values: valuesOf(form), ticked: form.getAll('events'), errors };
  const status = Object.keys(errors).length > 0 ? 422 : 200;
  return show('webhooks/webhooks', 'Webhooks', data, { status });
}

async function add(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { db, seal, allowPrivate } = parts;
  const { org, form, now } = visit;
  const url = (form.get('url') ?? '').trim();
  const parsed = parseWebhookUrl(url, allowPrivate);
  const events = checkForm(form, eventFields);
  const errors = {
    ...(typeof parsed === 'object' && { url: sentence(parsed.fault) }),
    ...(!events.ok && events.errors),
  };
  if (!events.ok || typeof parsed === 'object') return list(visit, parts, errors);
  const added = await addOwnWebhook(
    db,
    { orgId: org.id, url, types: events.values },
    { seal, allowPrivate, now },
  );
  if ('fault' in added) return list(visit, parts, { url: added.fault });
  return show('webhooks/secret', 'Webhooks', { ...added, oldSecretUntil: null });
}

function sentence(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
}
