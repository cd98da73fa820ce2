/**
 * Serves the dialects at the root of the host, because frameworks drop the path of a configured URL, and below
 * /compat/<name>/. At the root, a dialect is told from another by its paths and by its credential.
 */
import Router from '@koa/router';
import type { Context, Middleware, Next } from 'koa';
import { requireManager } from '#accounts/api-keys.ts';
import { admitSend } from '#front/api/send/admit-send.ts';
import { acceptCounted, type CountedParts } from '#front/api/send/counted-batch.ts';
import { fetcherOf } from '#front/api/send/fetcher.ts';
import { nameHeld } from '#front/api/send/held-header.ts';
import type { SendParts } from '#front/api/send/routes.ts';
import { requireDeclaration } from '#front/http/body-limits.ts';
import { nameUnknownParameters } from '#front/http/ignored.ts';
import { methodsOf, ownMethods } from '#front/http/own-methods.ts';
import { boundQuery } from '#front/http/query.ts';
import { withSlot } from '#front/http/server-busy.ts';
import { unknownPath, wrongMethod } from '#front/http/unknown-path.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import type { DialectName } from '#platform/values/glossary.ts';
import type { Dialect, DialectParts, DialectRoute } from './dialect.ts';
import { readDialectBody } from './dialect-body.ts';
import { Form } from './form.ts';

/** Calls in flight for each admission slot: one that has the slot, and one that waits for it. */
const callsPerSlot = 2;

const ownPaths = /^\/api(\/|$)/;

interface Served {
  dialect: Dialect;
  router: Router;
}

export type ServeParts = DialectParts & CountedParts & Pick<SendParts, 'fetchAttachments'>;

/** Answers every request that a dialect has a path for. Refusals are thrown; front/api/api-app.ts writes them. */
export function serveDialects(dialects: readonly Dialect[], parts: ServeParts): Middleware {
  const refuse = async (context: Context, methods: string[]) => {
    await parts.authorize.countUnrouted(context);
    throw methods.length === 0 ? unknownPath(context) : wrongMethod(context, methods);
  };
  const withinLimit = withSlot(callsPerSlot * parts.admission.maxSlots);
  const served = dialects.map((dialect) => ({
    dialect,
    router: routerOf(dialect, parts, [ownMethods(refuse), withinLimit]),
  }));
  // No dialect has a path of ours, and most requests are for one.
  return (context, next) => (ownPaths.test(context.path) ? next() : serve(context, next));

  async function serve(context: Context, next: Next): Promise<void> {
    // Some SDKs join the configured URL and the path with one slash too many.
    const path = context.path.replace(/\/{2,}/g, '/');
    const found = findPrefixed(served, path) ?? findAtRoot(served, path, context);
    const one = found?.served ?? findClaiming(served, path, context);
    if (!one) return next();
    const { dialect, router } = one;
    context.state.credential = dialect.verify(context);
    context.state.writeRefusal = dialect.writeRefusal;
    boundQuery(context);
    if (found === null) return next();
    context.path = found.path;
    await router.routes()(context as never, () =>
      refuse(context, methodsOf(router.match(found.path, context.method).path)),
    );
  }
}

interface Found {
  served: Served;
  path: string;
}

function findPrefixed(served: Served[], path: string): Found | null {
  const [, name, rest] = /^\/compat\/([a-z]+)(\/.*)?$/.exec(path) ?? [];
  const one = served.find(({ dialect }) => dialect.name === name);
  return one ? { served: one, path: rest ?? '/' } : null;
}

/** If no dialect finds its credential in the request, the first one with the path answers 401 in its words. */
function findAtRoot(served: Served[], path: string, context: Context): Found | null {
  const known = served.filter(({ router }) => router.match(path, context.method).path.length > 0);
  const one = known.find(({ dialect }) => dialect.verify(context) !== null) ?? known[0];
  return one ? { served: one, path } : null;
}

/** Whose form an error has at a path that no dialect has: the services have many more than we know. */
function findClaiming(served: Served[], path: string, context: Context): Served | undefined {
  const claiming = served.filter(({ dialect }) => dialect.claims(context, path));
  return claiming.find(({ dialect }) => dialect.verify(context) !== null) ?? claiming[0];
}

function routerOf(
  { name, routes, openRoutes = [] }: Dialect,
  parts: ServeParts,
  before: Middleware[],
): Router {
  const router = new Router();
  for (const declared of routes) {
    requireDeclaration(declared.route, declared.body);
    const [method, path] = declared.route.split(' ') as [string, string];
    router.register(path, [method], [...before, handlerOf(name, declared, parts)] as never);
  }
  for (const { path, respond } of openRoutes) {
    const answer: Middleware = async (context) => {
      const now = parts.clock.now();
      context.body = await respond({ ...parts, context, params: context.params, now });
    };
    router.register(path, ['GET'], [...before, answer] as never);
  }
  return router;
}

function handlerOf(dialect: DialectName, route: DialectRoute, parts: ServeParts): Middleware {
  const declared = route.body === undefined || route.body.kind === 'none' ? null : route.body;
  return async (context) => {
    let slot: ByteHold | undefined;
    try {
      // The body is read after the call was counted.
      const caller = await parts.authorize.enter(context, route.grant, async ({ orgId }) => {
        if (declared) slot = await admitSend(parts, orgId, 0);
      });
      if (route.grant === 'full_access') requireManager(caller, route.manages);
      const body = declared ? await readDialectBody(context, slot!, declared) : undefined;
      context.state.sent = body instanceof Form ? body.recipients() : body;
      const sender = { ...caller, dialect };
      context.body = await route.respond({
        ...parts,
        context,
        params: context.params,
        caller: sender,
        orgId: caller.orgId,
        fetchAll: fetcherOf(parts, context, caller, slot!),
        accept: async (request, by) => {
          const accepted = await parts.accept(request, by);
          nameHeld(context, [accepted]);
          return accepted;
        },
        acceptAll: (batch) => acceptCounted(parts, context, sender, batch),
        body,
        now: parts.clock.now(),
      });
    } finally {
      slot?.release();
      const { parameters = [], nameOf } = context.state.readQuery ?? {};
      nameUnknownParameters(context, new Set(parameters), nameOf);
    }
  };
}
