/**
 * The only place that decides access to pages: the origin of a POST, the session, the membership and role in the organization
 * of the path, its demand for a second factor, and the CSRF token of the form. Another organization is answered like one that
 * does not exist.
 */
import type { Context } from 'koa';
import { isAtLeast, type Role, roles } from '#accounts/people/roles.ts';
import { findMembership, type Membership } from '#accounts/rows/memberships.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import type { User } from '#accounts/rows/users.ts';
import { readForm } from '#front/dashboard/forms.ts';
import type { OrgVisit, PageVisit, UserVisit } from '#front/dashboard/page.ts';
import { forbidden, notFound, paused } from '#front/dashboard/page-error.ts';
import { slotOwner } from '#front/dashboard/request-slots.ts';
import type { FormBody } from '#front/http/body-limits.ts';
import { CallSlots } from '#front/http/server-busy.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Csrf } from './csrf.ts';
import type { RouteAccess } from './route-access.ts';
import type { Sessions } from './sessions.ts';

/** Forms over the default size, at once: each takes several times its size in memory. */
const maxLarge = { inAll: 4, ofOne: 2 };

/** The person must do this first, on another page. */
export type Precondition = 'sign in' | 'turn on the second factor';

export interface AuthorizePage {
  /** The visit, if it is allowed; throws otherwise. Does not read the form. */
  authorize(context: Context, min: RouteAccess): Promise<PageVisit | UserVisit | OrgVisit | Precondition>;
  /** The visit with its form. This takes as long as the client needs, so the caller must hold no slot meanwhile. */
  withForm<V extends PageVisit>(visit: V, largeForm: FormBody | undefined): Promise<V>;
}

export function createAuthorizePage(parts: {
  db: Db;
  clock: Clock;
  csrf: Csrf;
  sessions: Sessions;
}): AuthorizePage {
  const { db, clock, csrf, sessions } = parts;
  const large = new CallSlots(maxLarge);
  return {
    async authorize(context, min) {
      if (context.method === 'POST') csrf.checkOrigin(context);
      const found = await sessions.find(context);
      if (!found && min !== 'anyone') return 'sign in';
      const visitor = sessions.visitor(context);
      const query = new URLSearchParams(context.querystring);
      const form = new URLSearchParams();
      const visit = { context, query, form, now: clock.now(), visitor, user: null, session: null };
      if (!found) return visit;
      const signedIn = { ...visit, ...found };
      if (min === 'anyone') return signedIn;
      const { org } = context.params as { org?: string };
      return org === undefined ? forUser(signedIn, min) : inOrganization(signedIn, min, org);
    },
    async withForm(visit, largeForm) {
      const { context, visitor } = visit;
      if (context.method !== 'POST') return visit;
      if (largeForm !== undefined) context.res.once('close', large.take(context, slotOwner(visit)));
      const form = await readForm(context, clock, largeForm);
      csrf.checkToken(context, form, visitor);
      return { ...visit, form };
    },
  };

  async function inOrganization(
    visit: UserVisit,
    min: RouteAccess,
    id: string,
  ): Promise<OrgVisit | 'turn on the second factor'> {
    const org = uuid.test(id) ? await membershipOf(visit.user, id) : null;
    if (!org) throw notFound('organization');
    if (org.pause && !visit.user.isOperator) throw paused(org.pause);
    if (org.requiresSecondFactor && visit.user.totpSecret === null) return 'turn on the second factor';
    if (min === 'operator') requireOperator(visit.user);
    else if (!isAtLeast(org.role, min as Role))
      throw forbidden(
        `Your role in ${org.name} is ${org.role}. This page requires ${roles.slice(roles.indexOf(min as Role)).join(' or ')}. Ask an owner to change your role.`,
      );
    return { ...visit, org, base: `/dashboard/o/${org.id}`, may: (role) => isAtLeast(org.role, role) };
  }

  async function membershipOf(user: User, orgId: string): Promise<Membership | null> {
    if (!user.isOperator) return findMembership(db, user.id, orgId);
    const org = await findOrganization(db, orgId);
    if (!org) return null;
    const { id, name, pause, requiresSecondFactor } = org;
    return { id, name, role: 'owner', pause, requiresSecondFactor };
  }
}

function forUser(visit: UserVisit, min: RouteAccess): UserVisit {
  if (min === 'operator') requireOperator(visit.user);
  return visit;
}

function requireOperator(user: User): void {
  if (!user.isOperator) throw forbidden('Only operators of this server can open this page.');
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
