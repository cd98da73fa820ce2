/** Receiving routes: the list in its order, a check of an address, and a form that adds one. */
import { z } from 'zod';
import { listDomains } from '#accounts/rows/domains-table.ts';
import { asProblem, itemIn, showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors, nullable, oneLine, optional } from '#front/dashboard/forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect } from '#front/dashboard/page.ts';
import { checkAddress, outcomeOf } from '#mail/received/check-address.ts';
import { addRoute, maxPriority } from '#mail/received/define-route.ts';
import { dmarcChoices, receivingActions } from '#mail/received/received-mail.ts';
import { defaultReply } from '#mail/received/reject-reply.ts';
import { deleteRoute, findRoute, listRoutes } from '#mail/received/rows/receiving-routes.ts';
import { listWebhooks } from '#mail/webhooks/rows/webhooks.ts';

const fields = z.object({
  pattern: oneLine('a pattern', 254),
  action: z.enum(receivingActions, { error: 'Choose what becomes of the mail.' }),
  webhookId: nullable(z.guid({ error: 'Choose one of the endpoints.' })),
  reply: nullable(z.string()),
  priority: optional(
    z.coerce
      .number({ error: 'Enter a whole number.' })
      .int('Enter a whole number.')
      .min(0, 'Enter a number from 0.')
      .max(maxPriority, `Enter at most ${maxPriority}.`),
  ),
  dmarc: z.enum(dmarcChoices).default('accept').catch('accept'),
});

export const routesPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/routes': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/routes'(visit, parts) {
      const { form, org, base, now } = visit;
      const checked = checkForm(form, fields);
      if (!checked.ok) return list(visit, parts, checked.errors);
      // The form has the fields of all actions.
      const { action, webhookId, reply } = checked.values;
      const request = {
        ...checked.values,
        webhookId: action === 'webhook' ? webhookId : null,
        reply: action === 'reject' ? reply : null,
      };
      const added = await addRoute(parts.db, org.id, request, now).catch(asProblem);
      if ('problem' in added) return list(visit, parts, errorIn(added.problem));
      return redirect(`${base}/routes`, `The route ${added.pattern} was added. It holds within a second.`);
    },
    async 'POST /dashboard/o/:org/routes/:id/remove'(visit, { db }) {
      const { id, pattern } = await itemIn(visit, 'route', (each, orgId) => findRoute(db, each, orgId));
      await deleteRoute(db, id);
      return redirect(`${visit.base}/routes`, `The route ${pattern} was removed.`);
    },
  },
};

/** A refusal begins with the member that it is about. */
function errorIn(problem: string): Errors {
  const [, name, text] = /^(webhookId|reply): (.*)$/s.exec(problem) ?? [];
  return name === undefined ? { pattern: problem.replace(/^pattern: /, '') } : { [name]: text! };
}

/** As an address that anyone may type. */
const maxAddress = 1024;

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const { org, query, form } = visit;
  const [routes, domains, webhooks] = await Promise.all([
    listRoutes(db, org.id),
    listDomains(db, org.id),
    listWebhooks(db, org.id),
  ]);
  const address = (query.get('address') ?? '').trim().slice(0, maxAddress);
  const urls = new Map(webhooks.map(({ id, url }) => [id, url]));
  const data = {
    routes: routes.map((route) => ({
      ...route,
      outcome: outcomeOf(route),
      endpoint: route.webhookId === null ? null : (urls.get(route.webhookId) ?? null),
    })),
    domains: domains.filter(({ receives }) => receives).map(({ name, status }) => ({ name, status })),
    webhooks: webhooks.map(({ id, url }) => [id, url]),
    actions: receivingActions,
    defaultReply,
    ticked: form.get('action') ?? 'webhook',
    address,
    checked: address === '' ? null : await checkAddress(db, org.id, address),
  };
  return showForm('receiving-routes/receiving-routes', 'Routes', visit, data, errors);
}
