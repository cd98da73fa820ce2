/** /api/public/routes: what becomes of email that is received for the organization's domains. */
import { answer, byId, doneAnswer, resource } from '#front/api/management.ts';
import { noBody } from '#front/http/body-limits.ts';
import { checkAddress } from '#mail/received/check-address.ts';
import { addRoute, changeRoute } from '#mail/received/define-route.ts';
import type { ReceivingRoute } from '#mail/received/received-mail.ts';
import { deleteRoute, findRoute, listRoutes } from '#mail/received/rows/receiving-routes.ts';
import { iso } from '#platform/base/clock.ts';
import { checkQuery, newRoute, routeChange, routeSchemas } from './schema.ts';

const { RouteAnswer, RouteCheckAnswer, RoutesAnswer } = routeSchemas;

const routes = resource('Routes', byId('route', findRoute));

const notValid = 'The route is not valid, there are too many, or the body is not JSON.';

export const routeEndpoints = [
  routes.collection({
    route: 'GET /routes',
    operationId: 'listRoutes',
    summary: 'List receiving routes',
    description: 'All routes of received email.',
    response: answer('The routes.', RoutesAnswer),
    respond: async ({ db, orgId }) => ({ routes: (await listRoutes(db, orgId)).map(presentRoute) }),
  }),
  routes.collection({
    route: 'POST /routes',
    operationId: 'addRoute',
    summary: 'Add a receiving route',
    description:
      'Says what becomes of email for some addresses of a domain that receives. An organization can have 200 routes.',
    body: newRoute,
    response: answer('The route.', RouteAnswer),
    errors: { VALIDATION_ERROR: true, BAD_REQUEST: notValid },
    respond: async ({ db, orgId, body, now }) => ({
      route: presentRoute(await addRoute(db, orgId, body, now)),
    }),
  }),
  // Before the route of one, whose id it could be.
  routes.collection({
    route: 'GET /routes/check',
    operationId: 'checkRoute',
    summary: 'Check an address',
    description: 'Which route would take email for an address, and if none, why.',
    query: checkQuery,
    response: answer('The route that takes the address.', RouteCheckAnswer),
    async respond({ db, orgId, query }) {
      const { route, ...checked } = await checkAddress(db, orgId, query.address);
      return { ...checked, route: route && presentRoute(route) };
    },
  }),
  routes.item({
    route: 'GET /routes/{id}',
    operationId: 'getRoute',
    summary: 'Show a receiving route',
    description: 'One route.',
    response: answer('The route.', RouteAnswer),
    respond: async ({ found }) => ({ route: presentRoute(found) }),
  }),
  routes.item({
    route: 'PATCH /routes/{id}',
    operationId: 'changeRoute',
    summary: 'Change a receiving route',
    description: 'Holds within a second, for email that arrives then.',
    body: routeChange,
    response: answer('The changed route.', RouteAnswer),
    errors: { VALIDATION_ERROR: true, BAD_REQUEST: notValid },
    respond: async ({ db, found, body, now }) => ({
      route: presentRoute(await changeRoute(db, found, body, now)),
    }),
  }),
  routes.item({
    route: 'DELETE /routes/{id}',
    body: noBody,
    operationId: 'removeRoute',
    summary: 'Remove a receiving route',
    description:
      'Email that the route took is kept. What arrives later is taken by the next route, or refused.',
    response: doneAnswer('The route is removed.'),
    async respond({ db, found }) {
      await deleteRoute(db, found.id);
      return {};
    },
  }),
];

export function presentRoute({ orgId: _, createdAt, updatedAt, ...route }: ReceivingRoute) {
  return { ...route, createdAt: iso(createdAt), updatedAt: iso(updatedAt) };
}
