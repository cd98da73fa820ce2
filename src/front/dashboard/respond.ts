/** Writes responses: a page in its frame, a part of a page, a redirect, a body; error pages; the redirect to the sign-in page. */
import type { Context } from 'koa';
import { z } from 'zod';
import { listMemberships, type Membership, newestOrganizations } from '#accounts/rows/memberships.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import type { User } from '#accounts/rows/users.ts';
import type { Cookies } from '#front/dashboard/security/cookies.ts';
import type { Csrf } from '#front/dashboard/security/csrf.ts';
import type { Sessions } from '#front/dashboard/security/sessions.ts';
import { pathOf, pathWithin } from '#front/dashboard/security/sign-in-return.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Flashes } from './flash.ts';
import { organizationLinks, serviceLinks } from './navigation.ts';
import { type OrgVisit, type PageAnswer, type PageVisit, show } from './page.ts';
import { asPageError, PageError } from './page-error.ts';
import type { Frame, Render } from './render.ts';

type Respond = (visit: PageVisit | OrgVisit, answer: PageAnswer) => Promise<void>;

type NamedRole = Pick<Membership, 'id' | 'name' | 'role'>;

const maxInSwitcher = 12;

export function createRespond(parts: {
  db: Db;
  csrf: Csrf;
  cookies: Cookies;
  flashes: Flashes;
  render: Render;
}): Respond {
  const { db, csrf, cookies, flashes, render } = parts;
  return async (visit, answer) => {
    const { context } = visit;
    if ('to' in answer) {
      if (answer.flash) flashes.set(context, answer.flash);
      seeOther(context, answer.to);
    } else if ('body' in answer) {
      context.set(answer.headers);
      context.set('Content-Type', answer.type);
      context.body = answer.body;
    } else {
      context.status = answer.status;
      context.set('Content-Type', 'text/html; charset=utf-8');
      context.body = render(answer, await frameOf(visit));
    }
  };

  async function frameOf(visit: PageVisit | OrgVisit): Promise<Frame> {
    const { context, user, visitor } = visit;
    const theme = cookies.get(context, 'theme');
    const organizations = user ? await organizationsOf(user) : [];
    const current = await currentOrganization(visit, organizations);
    return {
      visit,
      csrf: csrf.tokenFor(visitor),
      flash: flashes.take(context),
      theme: theme === 'light' || theme === 'dark' ? theme : null,
      current,
      links: current ? organizationLinks(`/dashboard/o/${current.id}`, context.path, current.role) : [],
      serviceLinks: user?.isOperator ? serviceLinks(context.path) : [],
      organizations,
    };
  }

  async function organizationsOf({ id, isOperator }: User): Promise<NamedRole[]> {
    if (!isOperator) return (await listMemberships(db, id)).slice(0, maxInSwitcher);
    const found = await newestOrganizations(db, maxInSwitcher);
    return found.map((one) => ({ ...one, role: 'owner' }));
  }

  /** The organization of the path; on pages of the server and of the account, the one that was opened last. */
  async function currentOrganization(
    visit: PageVisit | OrgVisit,
    organizations: NamedRole[],
  ): Promise<NamedRole | null> {
    const { context } = visit;
    const last = cookies.get(context, 'organization');
    if (!('org' in visit)) {
      const listed = organizations.find(({ id }) => id === last);
      if (listed || !last || !visit.user) return listed ?? null;
      // The list has only the first of many.
      if (!visit.user.isOperator)
        return (await listMemberships(db, visit.user.id)).find(({ id }) => id === last) ?? null;
      const found = z.guid().safeParse(last).success ? await findOrganization(db, last) : null;
      return found && { ...found, role: 'owner' };
    }
    if (visit.org.id !== last) cookies.set(context, 'organization', visit.org.id);
    return visit.org;
  }
}

/** Error pages have the dashboard's frame, with the navigation of the signed-in person. */
export function createRespondError({
  respond,
  sessions,
  clock,
  onError,
}: {
  respond: Respond;
  sessions: Sessions;
  clock: Clock;
  onError(what: string, error: unknown): void;
}) {
  return async (context: Context, error: unknown): Promise<void> => {
    const known = asPageError(error);
    if (!known) onError(`page ${context.state.requestId} failed`, error);
    const { status, title, message } =
      known ??
      new PageError(
        500,
        'Something went wrong',
        'The server could not show this page. Try again. The operator can find the reason in the log.',
      );
    // A 429 means that the server is too busy to look up the session.
    const session = known && status !== 429 && !context.state.visit ? await sessions.find(context) : null;
    const visit: PageVisit = context.state.visit ?? {
      context,
      form: new URLSearchParams(),
      query: new URLSearchParams(),
      now: clock.now(),
      visitor: sessions.visitor(context),
      user: session?.user ?? null,
      session: session?.session ?? null,
    };
    closeIfUnread(context);
    const data = { status, title, message, requestId: context.state.requestId };
    await respond(visit, show('error/error', title, data, { status }));
  };
}

export function redirectToSignIn(context: Context, cookies: Cookies): void {
  const query = new URLSearchParams({ to: returnTo(context) });
  if (cookies.get(context, 'session') !== null) query.set('ended', '');
  leaveFor(context, `/dashboard/sign-in?${query}`);
}

/** The organization of the path is open only to users who have one. */
export function redirectToSecondFactor(context: Context): void {
  leaveFor(context, `/dashboard/account/second-factor?${new URLSearchParams({ to: returnTo(context) })}`);
}

/** The page to come back to. */
function returnTo(context: Context): string {
  // A part of a page cannot show the form, so the whole page is left.
  // A form that was sent is still on the page that it came from (assets/app.js).
  const to =
    context.get('hx-request') === 'true'
      ? pathOf(context.get('hx-current-url'))
      : context.method === 'GET'
        ? context.url
        : pathOf(context.get('referer'));
  return pathWithin(to);
}

function leaveFor(context: Context, location: string): void {
  closeIfUnread(context);
  if (context.get('hx-request') === 'true') {
    context.set('HX-Redirect', location);
    context.body = '';
  } else seeOther(context, location);
}

function seeOther(context: Context, to: string): void {
  context.status = 303;
  context.set('Location', to);
  context.body = '';
}

/** On a kept connection, the rest of an unread body would be taken for the next request. */
function closeIfUnread(context: Context): void {
  if (!context.req.complete) context.set('Connection', 'close');
}
