/**
 * Serves the dialects at the root of the host, because frameworks drop the path of a configured URL, and below
 * /compat/<name>/. At the root, a dialect is told from another by its paths and by the header that has its key.
 */
import Router from '@koa/router';
import type { Context, Middleware, Next } from 'koa';
import { requireManager } from '../accounts/api-keys.ts';
import type { Slot } from '../api/admission.ts';
import { requireDeclaration } from '../api/body-limits.ts';
import { literalPaths } from '../api/literal-paths.ts';
import { boundQuery } from '../api/query.ts';
import { admitSend } from '../api/send/admit-send.ts';
import type { GivenAttachment } from '../api/send/attachments.ts';
import { acceptCounted, type CountedParts } from '../api/send/counted-batch.ts';
import type { FetchAttachments } from '../api/send/fetch-attachments.ts';
import { whenHungUp } from '../api/send/routes.ts';
import { withSlot } from '../api/server-busy.ts';
import { unknownPath, wrongMethod } from '../api/unknown-path.ts';
import type { DialectName } from '../glossary.ts';
import type { Dialect, DialectParts, DialectRoute } from './dialect.ts';
import { readDialectBody } from './dialect-body.ts';
import { Form } from './form.ts';

/** Calls in flight for each admission slot: one that has the slot, and one that waits for it. */
const callsPerSlot = 2;

const ownPaths = /^\/api(\/|$)/;

interface Served {
  dialect: Dialect;
  router: Router;
  otherMethods: ReturnType<typeof literalPaths>;
}

export interface ServeParts extends DialectParts, CountedParts {
  fetchAttachments: FetchAttachments;
}

/** Answers every request that a dialect has a path for. Refusals are thrown; api/api-app.ts writes them. */
export function serveDialects(dialects: readonly Dialect[], parts: ServeParts): Middleware {
  const withinLimit = withSlot(callsPerSlot * parts.admission.maxSlots);
  const served = dialects.map((dialect) => ({
    dialect,
    router: routerOf(dialect, parts, withinLimit),
    otherMethods: literalPaths(dialect.routes.map(({ route }) => route)),
  }));
  // No dialect has a path of ours, and most requests are for one.
  return (context, next) => (ownPaths.test(context.path) ? next() : serve(context, next));

  async function serve(context: Context, next: Next): Promise<void> {
    // Some SDKs join the configured URL and the path with one slash too many.
    const path = context.path.replace(/\/{2,}/g, '/');
    const found = findPrefixed(served, path) ?? findAtRoot(served, path, context);
    const one = found?.served ?? findClaiming(served, path, context);
    if (!one) return next();
    const { dialect, router, otherMethods } = one;
    context.state.apiKey = dialect.apiKeyOf(context);
    context.state.writeRefusal = dialect.writeRefusal;
    boundQuery(context);
    if (found === null) return next();
    context.path = found.path;
    const refuse = async (methods: string[]) => {
      await parts.authorize.countUnrouted(context);
      throw methods.length === 0 ? unknownPath(context) : wrongMethod(context, methods);
    };
    const others = otherMethods(context);
    if (others !== null) return refuse(others);
    await router.routes()(context as never, () =>
      refuse(router.match(found.path, context.method).path.flatMap((layer) => layer.methods)),
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

/** If no dialect finds its key in the request, the first one with the path answers 401 in its words. */
function findAtRoot(served: Served[], path: string, context: Context): Found | null {
  const known = served.filter(({ router }) => router.match(path, context.method).path.length > 0);
  const one = known.find(({ dialect }) => dialect.apiKeyOf(context) !== null) ?? known[0];
  return one ? { served: one, path } : null;
}

/** Whose form an error has at a path that no dialect has: the services have many more than we know. */
function findClaiming(served: Served[], path: string, context: Context): Served | undefined {
  const claiming = served.filter(({ dialect }) => dialect.claims(context, path));
  return claiming.find(({ dialect }) => dialect.apiKeyOf(context) !== null) ?? claiming[0];
}

function routerOf(
  { name, routes, openRoutes = [] }: Dialect,
  parts: ServeParts,
  withinLimit: Middleware,
): Router {
  const router = new Router();
  for (const declared of routes) {
    requireDeclaration(declared.route, declared.body);
    const [method, path] = declared.route.split(' ') as [string, string];
    router.register(path, [method], [withinLimit, handlerOf(name, declared, parts)] as never);
  }
  for (const { path, respond } of openRoutes) {
    const answer: Middleware = async (context) => {
      const now = parts.management.clock.now();
      context.body = await respond({ ...parts, context, params: context.params, now });
    };
    router.register(path, ['GET'], [withinLimit, answer] as never);
  }
  return router;
}

function handlerOf(
  dialect: DialectName,
  { grant, body: given, respond }: DialectRoute,
  parts: ServeParts,
): Middleware {
  const { authorize, acceptBatch: _, fetchAttachments, ...rest } = parts;
  const declared = given === undefined || given.kind === 'none' ? null : given;
  return async (context) => {
    let slot: Slot | undefined;
    try {
      const caller = await authorize.enter(context, grant, async ({ orgId }) => {
        if (declared) slot = await admitSend(parts, orgId, 0);
      });
      if (grant === 'full_access') requireManager(caller);
      const body = slot && declared && (await readDialectBody(context, slot, declared));
      context.state.sent = body instanceof Form ? body.recipients() : body;
      const sender = { ...caller, dialect };
      const { orgId } = caller;
      const fetchAll = (files: GivenAttachment[]) =>
        fetchAttachments(orgId, files, slot!, whenHungUp(context.res));
      const now = parts.management.clock.now();
      context.body = await respond({
        ...rest,
        context,
        params: context.params,
        caller: sender,
        orgId,
        fetchAll,
        acceptAll: (batch) => acceptCounted(parts, context, sender, batch),
        body,
        now,
      });
    } finally {
      slot?.release();
    }
  };
}
