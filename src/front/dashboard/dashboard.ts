/**
 * The dashboard as one middleware: it answers everything below /dashboard, errors included, and passes other requests on.
 * The path of a request: headers → route → security/authorize-page.ts → the page's handler → respond.ts.
 */
import type { Context, Middleware } from 'koa';
import { type Cost, createPasswords } from '#accounts/people/passwords.ts';
import { createLinkMails } from '#front/dashboard/pages/sign-in/link-mails.ts';
import { createAuthorizePage, type Precondition } from '#front/dashboard/security/authorize-page.ts';
import { createCookies } from '#front/dashboard/security/cookies.ts';
import { createCsrf } from '#front/dashboard/security/csrf.ts';
import { createKnownBrowsers } from '#front/dashboard/security/known-browsers.ts';
import { createLoginThrottle } from '#front/dashboard/security/login-throttle.ts';
import type { RouteAccess } from '#front/dashboard/security/route-access.ts';
import { setPageHeaders } from '#front/dashboard/security/security-headers.ts';
import { createSessions } from '#front/dashboard/security/sessions.ts';
import { createSigner } from '#front/dashboard/security/signer.ts';
import type { Surroundings } from '#operate/doctor/surroundings.ts';
import type { ServerMailer } from '#operate/notices/server-mail.ts';
import type { Secrets } from '#platform/base/secrets.ts';
import { createAssets } from './assets.ts';
import { createFlashes } from './flash.ts';
import { createLongWorkSlots } from './long-work-slots.ts';
import { createOperatorJobs } from './operator-jobs.ts';
import type { PageParts } from './page.ts';
import { createPageRouter } from './page-router.ts';
import { createRender } from './render.ts';
import { createRequestSlots } from './request-slots.ts';
import { createRespond, createRespondError, redirectToSecondFactor, redirectToSignIn } from './respond.ts';

export type DashboardParts = Omit<
  PageParts,
  | 'passwords'
  | 'linkMails'
  | 'sessions'
  | 'knownBrowsers'
  | 'loginThrottle'
  | 'cookies'
  | 'longWorkSlots'
  | 'operatorJobs'
> & {
  secrets: Secrets;
  passwordCost: Cost;
  surroundings: Partial<Surroundings>;
  /** Null: no mail is sent to users. */
  mailer: ServerMailer | null;
};

export interface Dashboard {
  answer: Middleware;
  /** Aborts background jobs; resolves when they have ended. */
  stop(): Promise<void>;
}

export function createDashboard(dependencies: DashboardParts): Dashboard {
  const { db, clock, secrets, config, baseUrl, onError } = dependencies;
  const cookies = createCookies(config.baseUrl.startsWith('https:'));
  const signer = createSigner(secrets);
  const knownBrowsers = createKnownBrowsers(signer, clock, cookies);
  const sessions = createSessions(db, clock, cookies, knownBrowsers);
  const operatorJobs = createOperatorJobs(dependencies);
  const parts: PageParts = {
    ...dependencies,
    cookies,
    linkMails: createLinkMails(dependencies),
    sessions,
    knownBrowsers,
    passwords: createPasswords(dependencies.passwordCost),
    loginThrottle: createLoginThrottle(clock),
    longWorkSlots: createLongWorkSlots(),
    operatorJobs,
  };
  const csrf = createCsrf(signer, baseUrl);
  const authorizePage = createAuthorizePage({ db, clock, csrf, sessions });
  const slots = createRequestSlots();
  const assets = createAssets();
  const flashes = createFlashes(signer, cookies);
  const respond = createRespond({ db, csrf, cookies, flashes, render: createRender(assets) });
  const respondError = createRespondError({ respond, sessions, clock, onError });

  const authorize = (context: Context, min: RouteAccess) =>
    slots.whileAuthorizing(context, () => authorizePage.authorize(context, min));
  const leadTo = (context: Context, precondition: Precondition) =>
    precondition === 'sign in' ? redirectToSignIn(context, cookies) : redirectToSecondFactor(context);

  const route = createPageRouter(async (context, min, page, handler) => {
    const authorized = await authorize(context, min);
    if (typeof authorized === 'string') return leadTo(context, authorized);
    context.state.visit = authorized;
    const { form } = await authorizePage.withForm(authorized, page.form);
    // The person may have lost the right while the form arrived.
    const isAgain = context.method === 'POST' && min !== 'anyone';
    const still = isAgain ? await authorize(context, min) : authorized;
    if (typeof still === 'string') return leadTo(context, still);
    const visit = { ...still, form };
    context.state.visit = visit;
    context.state.isStillAllowed = () =>
      authorize(context, min).then(
        (found) => typeof found !== 'string',
        () => false,
      );
    await slots.whileHandling(visit, async () => respond(visit, await handler(visit, parts)));
  });

  const answer: Middleware = (context, next) => {
    const { path, method } = context;
    if (path === '/' && (method === 'GET' || method === 'HEAD')) return context.redirect('/dashboard');
    return path === '/dashboard' || path.startsWith('/dashboard/') ? answerPage(context) : next();
  };

  async function answerPage(context: Context): Promise<void> {
    setPageHeaders(context);
    try {
      if (!(await assets.serve(context))) await route(context);
    } catch (error) {
      await respondError(context, error);
    }
  }

  return { answer, stop: operatorJobs.stop };
}
