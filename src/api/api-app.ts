/**
 * The public HTTP interface as a Koa application: which path is answered by whom, and what every answer has in
 * common. Whatever goes wrong leaves as the error body of docs/api.md section 2.5 with a code of its table.
 */

import Router from '@koa/router';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import type { Window } from '../accounts/limits.ts';
import { newId } from '../base/id.ts';
import { Refusal, statusOf } from '../mail/refusal.ts';
import type { Authorize } from './authorize.ts';
import { resolveClientAddress } from './client-address.ts';
import { compressText } from './compress.ts';
import { addCreditRoutes } from './credits/routes.ts';
import { getDocs } from './docs/routes.ts';
import { addDomainRoutes } from './domains/routes.ts';
import { type FindEmail, getEmail } from './email/routes.ts';
import { getEmails, type SearchEmails } from './emails/routes.ts';
import { type FeedParts, getEvents } from './events/routes.ts';
import { addKeyRoutes } from './keys/routes.ts';
import type { Management } from './management.ts';
import { documentOf } from './openapi/openapi-document.ts';
import { getDocument } from './openapi/routes.ts';
import { seconds, setRateHeaders } from './rate-headers.ts';
import { BodyBudgetExceeded } from './request-body.ts';
import { type SendParts, sendEmail } from './send/routes.ts';
import { withSlot } from './server-busy.ts';
import { addCsvRoutes } from './suppressions/csv.ts';
import { addSuppressionRoutes } from './suppressions/routes.ts';
import { addWebhookRoutes } from './webhooks/routes.ts';
import { addTestAndReplayRoutes } from './webhooks/test-and-replay.ts';

export interface ApiParts extends SendParts {
  authorize: Authorize;
  findEmail: FindEmail;
  searchEmails: SearchEmails;
  feed: FeedParts;
  management: Omit<Management, 'authorize' | 'admission'>;
  /** What tracking links answer: no part of the public interface. */
  tracking: Router;
  /** Whose X-Forwarded-For is believed, besides this machine's own. */
  proxies: readonly string[];
  /** What people see: whatever is below /dashboard. */
  dashboard: Middleware;
  /** As the world sees this service, for its documentation. */
  baseUrl(): string;
  /** Sees every request, from outside of all else. */
  observe: Middleware;
  onError(what: string, error: unknown): void;
}

const managementRoutes = [
  addDomainRoutes,
  addKeyRoutes,
  addSuppressionRoutes,
  addCsvRoutes,
  addWebhookRoutes,
  addTestAndReplayRoutes,
  addCreditRoutes,
];

/** Those that have a place, as many in line, and as many others. */
const callsAPlace = 3;

/** A client that hangs up is no trouble of ours; of a live stream it is the usual end. */
const goneAway = ['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'];

export function createApi(parts: ApiParts): Koa {
  const router = new Router({ prefix: '/api/public' });
  const inBounds = withSlot(callsAPlace * parts.admission.maxSlots);
  router.post('/email/send', inBounds, sendEmail(parts));
  router.get('/email/:id', inBounds, getEmail(parts.authorize, parts.findEmail));
  router.get('/emails', inBounds, getEmails(parts.authorize, parts.searchEmails));
  router.get('/events', inBounds, getEvents(parts.authorize, parts.feed));
  const management = { ...parts.management, authorize: parts.authorize, admission: parts.admission };
  for (const add of managementRoutes) add(router, inBounds, management);
  const document = documentOf(parts.baseUrl);
  router.get('/openapi.json', getDocument(document));
  const docs = new Router();
  docs.get('/docs', getDocs(document));

  const app = new Koa();
  app.use(compressText);
  app.use(parts.observe);
  app.use(resolveClientAddress(parts.proxies));
  app.use(parts.dashboard);
  app.use(everyAnswer);
  app.use(answerRefusals(parts.authorize, parts.onError));
  app.use(router.routes());
  app.use(docs.routes());
  app.use(parts.tracking.routes());
  app.use(refuseTheRest(parts.authorize, [router, docs, parts.tracking]));
  app.on('error', (error) => {
    if (!goneAway.includes(error.code)) parts.onError('an answer could not be sent', error);
  });
  return app;
}

async function everyAnswer(context: Context, next: Next): Promise<void> {
  context.state.requestId = requestId(context.get('x-request-id'));
  context.set('X-Request-Id', context.state.requestId);
  context.set('X-API-Version', '1');
  setRateHeaders(context, []);
  await next();
}

/** The caller's own, where it is fit for a log line. */
function requestId(given: string): string {
  return /^[\w.:+/=-]{1,128}$/.test(given) ? given : newId();
}

function answerRefusals(authorize: Authorize, onError: ApiParts['onError']): Middleware {
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      const refusal = error instanceof Refusal ? error : unexpected(error);
      if (refusal.code === 'SEND_FAILED') {
        onError(`request ${context.state.requestId} failed`, refusal.cause);
        refusal.message += ` (request ${context.state.requestId})`;
      }
      if (refusal instanceof BodyBudgetExceeded)
        await authorize
          .uncount(context)
          .catch((cause) => onError('a request that was refused stays counted', cause));
      if (refusal.code === 'RATE_LIMIT_EXCEEDED') takenBack(context);
      answer(context, refusal);
    }
  };
}

function answer(context: Context, { code, message, issues, retryAfterMs }: Refusal): void {
  context.status = statusOf[code];
  context.body = { error: code, message, issues };
  if (retryAfterMs !== null) context.set('Retry-After', String(seconds(retryAfterMs)));
  // A body that was not read to its end would be taken for the next request.
  if (!context.req.complete) context.set('Connection', 'close');
}

/** A call that is refused with 429 after it was counted (the day's capacity) is counted no more. */
function takenBack(context: Context): void {
  const windows: Window[] | undefined = context.state.counted;
  if (windows)
    setRateHeaders(
      context,
      windows.map((window) => ({ ...window, remaining: window.remaining + 1 })),
    );
}

/** Koa and its router throw errors of their own for what a client has got wrong, such as a path that cannot be decoded. */
function unexpected(error: unknown): Refusal {
  const { status } = error as { status?: number };
  if (status !== undefined && status >= 400 && status < 500) {
    return new Refusal('BAD_REQUEST', 'The request is malformed.');
  }
  return new Refusal(
    'SEND_FAILED',
    'The request failed inside the service. Nothing was charged; try again.',
    {
      cause: error,
    },
  );
}

/** An unknown path is 404; a known one with another method is 405 and says which methods it takes (RFC 9110). */
function refuseTheRest(authorize: Authorize, routers: Router[]): Middleware {
  return async (context) => {
    if (context.path.startsWith('/api/public/')) await authorize.countUnrouted(context);
    const layers = routers.flatMap((router) => router.match(context.path, context.method).path);
    const methods = layers.flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new Refusal('NOT_FOUND', 'There is nothing at this path.');
    const allowed = [...new Set(methods)].join(', ');
    context.set('Allow', allowed);
    context.status = 405;
    context.body = { error: 'BAD_REQUEST', message: `This path takes ${allowed}.`, issues: [] };
  };
}
