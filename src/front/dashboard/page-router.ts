/** Routes requests to the handlers of pages.ts. Throws at the start if routes and the access table do not match. */
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { access, accessProblems, type RouteAccess } from '#front/dashboard/security/route-access.ts';
import { methodsOf, ownMethods } from '#front/http/own-methods.ts';
import type { DashboardPage, Handler, PageVisit } from './page.ts';
import { notFound, PageError } from './page-error.ts';
import { pages } from './pages.ts';

type Serve = (
  context: Context,
  min: RouteAccess,
  page: DashboardPage,
  handler: Handler<PageVisit>,
) => Promise<void>;

const scopes = ['open', 'user', 'organization', 'operator'] as const;

export function createPageRouter(serve: Serve): (context: Context) => Promise<void> {
  const routes = pages.flatMap((page) =>
    scopes.flatMap((scope) =>
      Object.entries(page[scope] ?? {}).map(([route, handler]) => ({ route, scope, page, handler })),
    ),
  );
  const problems = accessProblems(routes);
  if (problems.length > 0)
    throw new Error(`front/dashboard/security/route-access.ts: ${problems.join('; ')}`);
  const router = new Router();
  const methodsAt = (path: string) => methodsOf(router.match(path, 'GET').path);
  const answerOther = async (context: Context, methods: string[]) => {
    // A reload of a page that answered a form, or of an address that was copied from it.
    if (methods.includes('POST') && context.method === 'GET')
      return context.redirect(pageAbove(context.path, (path) => methodsAt(path).includes('GET')));
    refuse(context, methods);
  };
  for (const { route, page, handler } of routes) {
    const [method, path] = route.split(' ') as ['GET' | 'POST', string];
    const min = access[route]!;
    const answer: Middleware = (context) => serve(context, min, page, handler as Handler<PageVisit>);
    router.register(path, [method], [ownMethods(answerOther), answer] as never);
  }
  const middleware = router.routes();
  return (context) => middleware(context as never, () => answerOther(context, methodsAt(context.path)));
}

/** The page that has the form which is posted to `path`: the nearest path above it that is a page. */
function pageAbove(path: string, isPage: (path: string) => boolean): string {
  const above = path.slice(0, path.lastIndexOf('/'));
  return above === '/dashboard' || isPage(above) ? above : pageAbove(above, isPage);
}

function refuse(context: Context, methods: string[]): never {
  if (methods.length === 0) throw notFound();
  context.set('Allow', [...new Set(methods)].join(', '));
  throw new PageError(405, 'Method not allowed', 'This page does not accept this kind of request.');
}
