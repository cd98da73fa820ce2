/** Receiving routes: the list in its order, a check of an address, and a form that adds or changes one. */
import { z } from 'zod';
import { switchReceiving } from '#accounts/domain-receiving.ts';
import { findDomain, listDomains } from '#accounts/rows/domains-table.ts';
import { asProblem, itemIn, showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors, nullable, oneLine, optional } from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
} from '#front/dashboard/page.ts';
import { checkAddress, outcomeOf } from '#mail/received/check-address.ts';
import { addRoute, changeRoute, maxPriority, type RouteRequest } from '#mail/received/define-route.ts';
import { dmarcChoices, type ReceivingRoute, receivingActions } from '#mail/received/received-mail.ts';
import { defaultReply } from '#mail/received/reject-reply.ts';
import { deleteRoute, findRoute, listRoutes } from '#mail/received/rows/receiving-routes.ts';
import { listWebhooks } from '#mail/webhooks/rows/webhooks.ts';
import type { Db } from '#platform/database/engine/open.ts';

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
    'POST /dashboard/o/:org/routes': (visit, parts) =>
      save(visit, {
        act: (request) => addRoute(parts.db, visit.org.id, request, visit.now),
        done: 'added',
        again: (errors) => list(visit, parts, errors),
        next: (route) => receive(visit, parts, route),
      }),
    'GET /dashboard/o/:org/routes/:id': async (visit, parts) =>
      page(visit, parts, await routeIn(visit, parts)),
    async 'POST /dashboard/o/:org/routes/:id'(visit, parts) {
      const route = await routeIn(visit, parts);
      return save(visit, {
        act: (request) => changeRoute(parts.db, route, request, visit.now),
        done: 'changed',
        again: (errors) => page(visit, parts, route, errors),
      });
    },
    async 'POST /dashboard/o/:org/routes/:id/remove'(visit, parts) {
      const { id, pattern } = await routeIn(visit, parts);
      await deleteRoute(parts.db, id);
      return redirect(`${visit.base}/routes`, `The route ${pattern} was removed.`);
    },
  },
};

const routeIn = (visit: OrgVisit, { db }: PageParts) =>
  itemIn(visit, 'route', (id, orgId) => findRoute(db, id, orgId));

interface Saving {
  act(request: RouteRequest): Promise<ReceivingRoute>;
  /** What was done with the route. */
  done: string;
  /** The page with the form, and what is wrong in it. */
  again(errors: Errors): Promise<PageAnswer>;
  /** Null: the list. */
  next?(route: ReceivingRoute): Promise<PageAnswer | null>;
}

async function save({ form, base }: OrgVisit, { act, done, again, next }: Saving): Promise<PageAnswer> {
  const checked = checkForm(form, fields);
  if (!checked.ok) return again(checked.errors);
  // The form has the fields of all actions.
  const { action, webhookId, reply } = checked.values;
  const request = {
    ...checked.values,
    webhookId: action === 'webhook' ? webhookId : null,
    reply: action === 'reject' ? reply : null,
  };
  const saved = await act(request).catch(asProblem);
  if ('problem' in saved) return again(errorIn(saved.problem));
  const flash = `The route ${saved.pattern} was ${done}. It holds within a second.`;
  return (await next?.(saved)) ?? redirect(`${base}/routes`, flash);
}

/** The domain of a new route receives from now on, if the form says so. */
async function receive({ form, org, base }: OrgVisit, { db, names }: PageParts, route: ReceivingRoute) {
  const domain = await findDomain(db, org.id, route.domain);
  if (!form.has('receives') || domain === null || domain.receives) return null;
  const added = `The route ${route.pattern} was added.`;
  const refused = await switchReceiving(db, domain, true, names).catch(asProblem);
  if (refused) return redirect(`${base}/routes`, { tone: 'note', text: `${added} ${refused.problem}` });
  const next = `${domain.name} receives mail as soon as its MX record below is published.`;
  return redirect(`${base}/domains/${domain.name}`, `${added} ${next}`);
}

/** A refusal begins with the member that it is about. */
function errorIn(problem: string): Errors {
  const [, name, text] = /^(webhookId|reply): (.*)$/s.exec(problem) ?? [];
  return name === undefined ? { pattern: problem.replace(/^pattern: /, '') } : { [name]: text! };
}

/** As an address that anyone may type. */
const maxAddress = 1024;

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const { org, query } = visit;
  const [routes, domains, choices] = await Promise.all([
    listRoutes(db, org.id),
    listDomains(db, org.id),
    choicesOf(visit, db),
  ]);
  const address = (query.get('address') ?? '').trim().slice(0, maxAddress);
  const urls = new Map(choices.webhooks);
  const data = {
    ...choices,
    current: { action: 'webhook', dmarc: 'accept' },
    routes: routes.map((route) => ({
      ...route,
      outcome: outcomeOf(route),
      endpoint: route.webhookId === null ? null : (urls.get(route.webhookId) ?? null),
    })),
    hasDomain: domains.length > 0,
    mayReceiveMore: domains.some(({ receives }) => !receives),
    address,
    checked: address === '' ? null : await checkAddress(db, org.id, address),
  };
  return showForm('receiving-routes/receiving-routes', 'Routes', visit, data, errors);
}

async function page(visit: OrgVisit, { db }: PageParts, route: ReceivingRoute, errors: Errors = {}) {
  const data = { ...(await choicesOf(visit, db)), current: route };
  return showForm('receiving-routes/receiving-route', route.pattern, visit, data, errors);
}

/** What the form offers. */
async function choicesOf({ org }: OrgVisit, db: Db) {
  const webhooks = await listWebhooks(db, org.id);
  return {
    webhooks: webhooks.map(({ id, url }) => [id, url] as const),
    actions: receivingActions,
    defaultReply,
  };
}
