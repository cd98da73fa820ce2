/**
 * The one place that decides who comes in. For each route: where it comes from (of a POST), who it is, whether they are
 * of the organization in the path and may do this there, and the form with its token. A foreign organization is as absent
 * as one that never was.
 */
import type { Context } from 'koa';
import { isAtLeast, type Role, roles } from '../accounts/roles.ts';
import { placesEach } from '../api/busy.ts';
import type { Clock } from '../clock.ts';
import { findMembership, type Membership } from '../db/memberships.ts';
import type { Db } from '../db/open.ts';
import { findOrganization } from '../db/organizations.ts';
import type { User } from '../db/users.ts';
import type { Access } from './access.ts';
import type { Csrf } from './csrf.ts';
import { forbidden, notFound } from './errors.ts';
import { readForm } from './forms.ts';
import type { OrgVisit, UserVisit, Visit } from './page.ts';
import type { Sessions } from './sessions.ts';

interface EntranceParts {
  db: Db;
  clock: Clock;
  csrf: Csrf;
  sessions: Sessions;
}

/** Forms that are larger than usual, at once: each takes several times its size. */
const mostLarge = 4;

export type Enter = (
  context: Context,
  least: Access,
  largestForm: number | undefined,
) => Promise<Visit | UserVisit | OrgVisit | 'sign in first'>;

export function createEntrance({ db, clock, csrf, sessions }: EntranceParts): Enter {
  const large = placesEach(mostLarge);
  return async (context, least, largestForm) => {
    const isPost = context.method === 'POST';
    if (isPost) csrf.checkOrigin(context);
    const found = await sessions.find(context);
    const visitor = sessions.visitor(context);
    const query = new URLSearchParams(context.querystring);
    const visit = {
      context,
      query,
      form: new URLSearchParams(),
      now: clock.now(),
      visitor,
      user: null,
      session: null,
    };
    const known: Visit = found ? { ...visit, ...found } : visit;
    if (least === 'anyone') return isPost ? withForm(known) : known;
    if (!found) return 'sign in first';
    const theirs = { ...visit, ...found };
    const { org } = context.params as { org?: string };
    const allowed = org === undefined ? forUser(theirs, least) : await inOrganization(theirs, least, org);
    return isPost ? withForm(allowed) : allowed;

    async function withForm<V extends Visit>(given: V): Promise<V> {
      if (largestForm !== undefined) context.res.once('close', large.take(context, 'all'));
      const form = await readForm(context, largestForm);
      csrf.checkToken(context, form, visitor);
      return { ...given, form };
    }
  };

  async function inOrganization(visit: UserVisit, least: Access, id: string): Promise<OrgVisit> {
    const org = uuid.test(id) ? await membershipOf(visit.user, id) : null;
    if (!org) throw notFound('organization');
    if (least === 'operator') requireOperator(visit.user);
    else if (!isAtLeast(org.role, least as Role))
      throw forbidden(
        `You are a ${org.role} of ${org.name}; this takes ${roles.slice(roles.indexOf(least as Role)).join(' or ')}. An owner can change that.`,
      );
    return { ...visit, org, base: `/dashboard/o/${org.id}`, may: (role) => isAtLeast(org.role, role) };
  }

  async function membershipOf(user: User, orgId: string): Promise<Membership | null> {
    if (!user.isOperator) return findMembership(db, user.id, orgId);
    const org = await findOrganization(db, orgId);
    return org && { id: org.id, name: org.name, role: 'owner' };
  }
}

function forUser(visit: UserVisit, least: Access): UserVisit {
  if (least === 'operator') requireOperator(visit.user);
  return visit;
}

function requireOperator(user: User): void {
  if (!user.isOperator) throw forbidden('This is for operators of the service.');
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
