/**
 * The public HTTP interface as a Koa application: the routes, and what every response has in common. Every failure
 * leaves as the error body of docs/api.md section 2.5, with a code of its table.
 */
import Router from '@koa/router';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import type { Caller } from '#accounts/api-keys.ts';
import type { Window } from '#accounts/limits.ts';
import { documentOf } from '#front/api/openapi/openapi-document.ts';
import { type Authorize, UncountedRefusal } from '#front/http/authorize.ts';
import { requireDeclaration } from '#front/http/body-limits.ts';
import { compressText } from '#front/http/compress.ts';
import { nameUnknownParameters } from '#front/http/ignored.ts';
import { methodsOf, ownMethods } from '#front/http/own-methods.ts';
import { boundQuery, boundUrl, shapeOf } from '#front/http/query.ts';
import { seconds, setRateHeaders } from '#front/http/rate-headers.ts';
import { withSlot } from '#front/http/server-busy.ts';
import { unknownPath, wrongMethod } from '#front/http/unknown-path.ts';
import { type RefusedSend, recipientsIn } from '#mail/record/refused-sends.ts';
import { newId } from '#platform/base/id.ts';
import { resolveClientAddress, trustedProxies } from '#platform/base/net/client-address.ts';
import { errorBody, Refusal, statusOf } from '#platform/values/refusal.ts';
import { type EndpointParts, endpoints } from './all-endpoints.ts';
import { type Endpoint, parseRoute } from './endpoint.ts';
import type { Management } from './management.ts';
import { referenceRoutes } from './reference-page.ts';

export interface ApiParts extends Omit<EndpointParts, 'management' | 'document'> {
  management: Omit<Management, 'authorize' | 'admission'>;
  /** Responds to tracking links, which are not part of the public interface. */
  tracking: Router;
  /** Links that unsubscribe. */
  unsubscribe: Router;
  /** Addresses and networks of proxies whose X-Forwarded-For is trusted, besides those on this machine. */
  proxies: readonly string[];
  /** Responds to everything below /dashboard. */
  dashboard: Middleware;
  /** Responds to the paths of other services' APIs. */
  dialects: Middleware;
  /** The public URL of this service, for its documentation. */
  baseUrl(): string;
  /** Sees every request, around all other middleware. */
  observe: Middleware;
  /** Called with each send that is refused, for the mail log. */
  onRefusedSend(send: RefusedSend): void;
  /** Called with the answer to a call without a valid key. */
  onUnauthorized(refusal: Refusal): void;
  onError(what: string, error: unknown): void;
}

/** Calls in flight for each admission slot: one that has the slot, one that waits for it, and one of another kind. */
const callsPerSlot = 3;

/** A client that hangs up is not our error; for a live stream it is the usual end. */
const disconnectCodes = ['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'];

export function createApi(parts: ApiParts): Koa {
  const { authorize, admission } = parts;
  const document = documentOf(parts.baseUrl);
  const withinLimit = withSlot(callsPerSlot * admission.maxSlots);
  const all = { ...parts, management: { ...parts.management, authorize, admission }, document };
  // A router compares a path with each of its patterns. Most calls are sends, which have one of their own.
  const isSend = ({ route }: Endpoint<EndpointParts>) => route === 'POST /email/send';
  const sends = createRouter(all, endpoints.filter(isSend), withinLimit);
  const others = createRouter(
    all,
    endpoints.filter((one) => !isSend(one)),
    withinLimit,
  );
  const docs = referenceRoutes(document);

  const app = new Koa();
  app.use(compressText);
  app.use(parts.observe);
  app.use(resolveClientAddress(trustedProxies(parts.proxies)));
  app.use(parts.dashboard);
  app.use(setCommonHeaders);
  app.use(respondToRefusals(authorize, parts));
  app.use((context, next) => {
    boundUrl(context);
    return next();
  });
  app.use(parts.dialects);
  app.use((context, next) => {
    boundQuery(context);
    return next();
  });
  const routers = [sends, others, docs, parts.unsubscribe, parts.tracking];
  for (const router of routers) app.use(router.routes());
  app.use((context) => {
    const matching = routers.flatMap((router) => router.match(context.path, context.method).path);
    return refuseUnrouted(authorize, context, methodsOf(matching));
  });
  app.on('error', (error) => {
    if (!disconnectCodes.includes(error.code)) parts.onError('a response could not be sent', error);
  });
  return app;
}

function createRouter(
  parts: EndpointParts,
  list: Endpoint<EndpointParts>[],
  withinLimit: Middleware,
): Router {
  const router = new Router({ prefix: '/api/public' });
  const own = ownMethods((context, methods) => refuseUnrouted(parts.authorize, context, methods));
  for (const { route, scopes, body, query, handler } of list) {
    requireDeclaration(route, body && 'limits' in body ? body.limits : body);
    const { method, path } = parseRoute(route);
    const known = new Set(shapeOf(query).keys());
    const respond = handler(parts);
    const middleware: Middleware = (context, next) => {
      nameUnknownParameters(context, known);
      return respond(context, next);
    };
    const pattern = path.replace(/\{(\w+)\}/g, ':$1');
    router[method](pattern, own, ...(scopes.length > 0 ? [withinLimit, middleware] : [middleware]));
  }
  return router;
}

function setCommonHeaders(context: Context, next: Next): Promise<void> {
  context.state.requestId = requestId(context.get('x-request-id'));
  context.set('X-Request-Id', context.state.requestId);
  context.set('X-API-Version', '1');
  setRateHeaders(context, []);
  return next();
}

/** The caller's id if it is safe in a log line, else a new one. */
function requestId(header: string): string {
  return /^[\w.:+/=-]{1,128}$/.test(header) ? header : newId();
}

function respondToRefusals(
  authorize: Authorize,
  parts: Pick<ApiParts, 'onError' | 'onRefusedSend' | 'onUnauthorized'>,
): Middleware {
  const { onError } = parts;
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      const refusal = error instanceof Refusal ? error : unexpected(error);
      if (refusal.code === 'SEND_FAILED') {
        onError(`request ${context.state.requestId} failed`, refusal.cause);
        refusal.message += ` (request ${context.state.requestId})`;
      }
      if (refusal instanceof UncountedRefusal)
        await authorize
          .uncount(context)
          .catch((cause) => onError('a refused request could not be uncounted', cause));
      if (refusal.code === 'RATE_LIMIT_EXCEEDED') restoreRateHeaders(context);
      tell(parts, context, refusal);
      respond(context, refusal);
    }
  };
}

function tell(
  { onRefusedSend, onUnauthorized }: Pick<ApiParts, 'onRefusedSend' | 'onUnauthorized'>,
  context: Context,
  refusal: Refusal,
): void {
  const { sender } = context.state;
  if (sender) onRefusedSend(refusedSend(context, sender, refusal));
  if (refusal.code === 'UNAUTHORIZED') onUnauthorized(refusal);
}

function refusedSend({ state: { sent, requestId } }: Context, sender: Caller, refusal: Refusal): RefusedSend {
  const recipients = refusal.recipients.length > 0 ? refusal.recipients : recipientsIn(sent);
  return { sender, refusal, recipients, requestId };
}

/** A dialect writes errors in its own form. */
function respond(context: Context, refusal: Refusal): void {
  const { retryAfterMs } = refusal;
  const write = context.state.writeRefusal ?? writeRefusal;
  write(context, refusal);
  if (retryAfterMs !== null) context.set('Retry-After', String(seconds(retryAfterMs)));
  if (context.response.get('Allow')) context.status = 405;
  // Otherwise the rest of an unread body would be parsed as the next request.
  if (!context.req.complete) context.set('Connection', 'close');
}

function writeRefusal(context: Context, refusal: Refusal): void {
  const { code, index } = refusal;
  context.status = statusOf[code];
  context.body = index === null ? errorBody(refusal) : { ...errorBody(refusal), index };
}

/** A call that is refused with 429 after it was counted (the day's recipients) is uncounted; the headers show that. */
function restoreRateHeaders(context: Context): void {
  const windows = context.state.rateWindows;
  if (windows)
    setRateHeaders(
      context,
      windows.map((window) => ({ ...window, remaining: window.remaining + countedIn(window, context) })),
    );
}

/** A batch is one call of the second and several of the day. */
function countedIn({ name }: Window, { state: { requests = 1 } }: Context): number {
  return name === 'day' ? requests : 1;
}

/** Koa and its router throw their own errors for client errors, such as a path that cannot be decoded. */
function unexpected(error: unknown): Refusal {
  const { status } = error as { status?: number };
  if (status !== undefined && status >= 400 && status < 500) {
    return new Refusal('BAD_REQUEST', 'The request is malformed.');
  }
  return new Refusal(
    'SEND_FAILED',
    'The service failed to handle the request. Nothing was charged. Try again.',
    {
      cause: error,
    },
  );
}

/** An unknown path is 404, and a known path with another method 405. */
async function refuseUnrouted(authorize: Authorize, context: Context, methods: string[]): Promise<never> {
  // A dialect leaves its credential in the state.
  const isCounted = context.path.startsWith('/api/public/') || context.state.credential !== undefined;
  if (isCounted) await authorize.countUnrouted(context);
  throw methods.length === 0 ? unknownPath(context) : wrongMethod(context, methods);
}
