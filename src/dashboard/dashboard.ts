/**
 * The dashboard, as one middleware: whatever is below /dashboard is answered here, in its own look, errors too; anything else
 * is the next one's. A page's way: headers → route → dashboard/security/authorize-page.ts → its handler → view or redirect.
 */
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { type Cost, createPasswords } from '../accounts/passwords.ts';
import { createSlotsPerOrganization, type SlotsPerOrganization } from '../api/server-busy.ts';
import type { Secrets } from '../base/secrets.ts';
import { listMemberships, searchOrganizations } from '../db/accounts/memberships.ts';
import type { Surroundings } from '../operate/doctor/surroundings.ts';
import { createAssets } from './assets.ts';
import { createFlashes } from './flash.ts';
import { createLongWorkSlots } from './long-work-slots.ts';
import { organizationLinks, serviceLinks } from './navigation.ts';
import { createOperatorJobs } from './operator-jobs.ts';
import {
  type DashboardPage,
  type Handler,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  show,
  type Visit,
} from './page.ts';
import { asPageError, notFound, PageError } from './page-error.ts';
import { pages } from './pages.ts';
import { createRender, type Frame } from './render.ts';
import { createAuthorizePage } from './security/authorize-page.ts';
import { createCookies } from './security/cookies.ts';
import { createCsrf } from './security/csrf.ts';
import { createKnownBrowsers } from './security/known-browsers.ts';
import { createLoginThrottle } from './security/login-throttle.ts';
import { type AccessEntry, access, accessFaults, type RouteAccess } from './security/route-access.ts';
import { setPageHeaders } from './security/security-headers.ts';
import { createSessions } from './security/sessions.ts';
import { pathOf, pathWithin } from './security/sign-in-return.ts';

export type DashboardParts = Omit<
  PageParts,
  'passwords' | 'sessions' | 'knownBrowsers' | 'loginThrottle' | 'cookies' | 'longWorkSlots' | 'operatorJobs'
> & {
  secrets: Secrets;
  passwordCost: Cost;
  surroundings: Partial<Surroundings>;
};

/**
 * Requests under way at once, by who asks: strangers take nothing from people who are signed in, and one person leaves room
 * for the others. Pages are rare beside sends, and must not crowd them out. While a form arrives, its request is in none.
 */
const maxUnderWay = { entering: 100, strangers: 25, signedIn: 75, ofOne: 25 };
const maxInSwitcher = 12;

export interface Dashboard {
  answer: Middleware;
  /** Breaks off what goes on in the background; resolves when it has ended. */
  stop(): Promise<void>;
}

export function createDashboard(given: DashboardParts): Dashboard {
  const { db, clock, secrets, config, baseUrl, onError } = given;
  const cookies = createCookies(config.baseUrl.startsWith('https:'));
  const knownBrowsers = createKnownBrowsers(secrets, clock, cookies);
  const sessions = createSessions(db, clock, cookies, knownBrowsers);
  const operatorJobs = createOperatorJobs(given);
  const parts: PageParts = {
    ...given,
    cookies,
    sessions,
    knownBrowsers,
    passwords: createPasswords(given.passwordCost),
    loginThrottle: createLoginThrottle(clock),
    longWorkSlots: createLongWorkSlots(),
    operatorJobs,
  };
  const csrf = createCsrf(secrets, baseUrl);
  const authorizePage = createAuthorizePage({ db, clock, csrf, sessions });
  const flashes = createFlashes(secrets, cookies);
  const assets = createAssets();
  const render = createRender(assets);
  const entering = createSlotsPerOrganization(maxUnderWay.entering);
  const strangers = createSlotsPerOrganization(maxUnderWay.strangers);
  const signedIn = createSlotsPerOrganization(maxUnderWay.signedIn);
  const ofOne = createSlotsPerOrganization(maxUnderWay.ofOne);
  const router = mount(pages, serve);

  async function serve(
    context: Context,
    min: RouteAccess,
    page: DashboardPage,
    handler: Handler<Visit>,
  ): Promise<void> {
    const admitted = await within(entering, context, '', () => authorizePage.authorize(context, min));
    if (admitted === 'sign in first') return toSignIn(context);
    context.state.visit = admitted;
    const visit = await authorizePage.withForm(admitted, page.maxFormBytes);
    context.state.visit = visit;
    const { user } = visit;
    const act = async () => answer(visit, await handler(visit, parts));
    if (user === null) await within(strangers, context, '', act);
    else await within(ofOne, context, user.id, () => within(signedIn, context, '', act));
  }

  async function answer(visit: Visit, given: PageAnswer): Promise<void> {
    const { context } = visit;
    if ('to' in given) {
      if (given.flash) flashes.set(context, given.flash);
      context.status = 303;
      context.set('Location', given.to);
      context.body = '';
    } else if ('body' in given) {
      context.set(given.headers);
      context.set('Content-Type', given.type);
      context.body = given.body;
    } else {
      context.status = given.status;
      context.set('Content-Type', 'text/html; charset=utf-8');
      context.body = render(given, await frameOf(visit));
    }
  }

  async function frameOf(visit: Visit | OrgVisit): Promise<Frame> {
    const { context, user, visitor } = visit;
    const theme = cookies.get(context, 'theme');
    return {
      visit,
      csrf: csrf.tokenFor(visitor),
      flash: flashes.take(context),
      theme: theme === 'light' || theme === 'dark' ? theme : null,
      links: 'org' in visit ? organizationLinks(visit.base, context.path, visit.org.role) : [],
      serviceLinks: user?.isOperator ? serviceLinks(context.path) : [],
      organizations: user ? await organizationsOf(user) : [],
    };
  }

  async function organizationsOf({ id, isOperator }: { id: string; isOperator: boolean }) {
    if (isOperator) return searchOrganizations(db, { text: '', limit: maxInSwitcher });
    return (await listMemberships(db, id)).slice(0, maxInSwitcher);
  }

  function toSignIn(context: Context): void {
    const isPart = context.get('hx-request') === 'true';
    // A part of a page cannot show the form, and is nothing to come back to: the page that it is of is.
    const to = isPart ? pathOf(context.get('hx-current-url')) : context.method === 'GET' ? context.url : null;
    const query = new URLSearchParams({ to: pathWithin(to) });
    if (cookies.get(context, 'session') !== null) query.set('ended', '');
    const location = `/dashboard/sign-in?${query}`;
    // The form is not read.
    if (!context.req.complete) context.set('Connection', 'close');
    if (isPart) context.set('HX-Redirect', location);
    else {
      context.status = 303;
      context.set('Location', location);
    }
    context.body = '';
  }

  /** In the dashboard's look, and in the frame of who is signed in. */
  async function answerError(context: Context, error: unknown): Promise<void> {
    const known = asPageError(error);
    if (!known) onError(`page ${context.state.requestId} failed`, error);
    const shown =
      known ??
      new PageError(
        500,
        'Something went wrong',
        'The service could not answer. Try again; the operator finds the reason in the log.',
      );
    // Where there was no room to ask who it is, nobody is asked now.
    const found = known && known.status !== 429 && !context.state.visit ? await sessions.find(context) : null;
    const visit: Visit = context.state.visit ?? {
      ...{ context, form: new URLSearchParams(), query: new URLSearchParams(), now: clock.now() },
      ...{ visitor: sessions.visitor(context), user: found?.user ?? null, session: found?.session ?? null },
    };
    // A body that was not read to its end would be taken for the next request.
    if (!context.req.complete) context.set('Connection', 'close');
    const { status, title, message } = shown;
    const data = { status, title, message, requestId: context.state.requestId };
    await answer(visit, show('error/error', title, data, { status }));
  }

  const route = router.routes();
  const middleware: Middleware = async (context, next) => {
    const { path, method } = context;
    if (path === '/' && (method === 'GET' || method === 'HEAD')) return void context.redirect('/dashboard');
    if (path !== '/dashboard' && !path.startsWith('/dashboard/')) return next();
    setPageHeaders(context);
    try {
      if (await assets.serve(context)) return;
      await route(context as never, async () => refuse(router, context));
    } catch (error) {
      await answerError(context, error);
    }
  };
  return { answer: middleware, stop: operatorJobs.stop };
}

async function within<Result>(
  slots: SlotsPerOrganization,
  context: Context,
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const leave = slots.take(context, key);
  return work().finally(leave);
}

type Serve = (
  context: Context,
  min: RouteAccess,
  page: DashboardPage,
  handler: Handler<Visit>,
) => Promise<void>;

/** Throws where a route has no entry in the table, or the table an entry that fits no route. */
function mount(all: DashboardPage[], serve: Serve): Router {
  const router = new Router();
  const routes = all.flatMap((page) =>
    (['open', 'user', 'organization', 'operator'] as const).flatMap((scope) =>
      Object.entries(page[scope] ?? {}).map(([route, handler]) => ({ route, scope, page, handler })),
    ),
  );
  const faults = accessFaults(routes satisfies { route: string; scope: AccessEntry['scope'] }[]);
  if (faults.length > 0) throw new Error(`dashboard/security/route-access.ts: ${faults.join('; ')}`);
  for (const { route, page, handler } of routes) {
    const [method, path] = route.split(' ') as ['GET' | 'POST', string];
    const min = access[route]!;
    router.register(path, [method], (context) =>
      serve(context as Context, min, page, handler as Handler<Visit>),
    );
  }
  return router;
}

function refuse(router: Router, context: Context): never {
  const methods = router.match(context.path, context.method).path.flatMap((layer) => layer.methods);
  if (methods.length === 0) throw notFound();
  context.set('Allow', [...new Set(methods)].join(', '));
  throw new PageError(405, 'That did not work', 'This page does not take such a request.');
}
