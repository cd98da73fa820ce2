/**
 * Signing in and out: email address and password, then a code if the person has a second factor. An error never says which
 * of address and password is wrong, and an unknown address takes as long as a known one. Between the two steps the browser
 * holds a sealed note that the password was right, valid for five minutes and until there is another password.
 */
import { z } from 'zod';
import { pausedMessage } from '#accounts/create-organization.ts';
import { recoveryCodeHash, totpStepOf } from '#accounts/people/totp.ts';
import { listMemberships } from '#accounts/rows/memberships.ts';
import { useRecoveryCode } from '#accounts/rows/one-time.ts';
import type { Pause } from '#accounts/rows/organizations.ts';
import { findUser, findUserByEmail, hasOperator, type User, useTotpStep } from '#accounts/rows/users.ts';
import { checkForm } from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  type PageVisit,
  redirect,
  show,
  type UserVisit,
} from '#front/dashboard/page.ts';
import { pathWithin } from '#front/dashboard/security/sign-in-return.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import { span } from '#platform/base/span.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { compareKey } from '#platform/values/address.ts';

export const signInPage: DashboardPage = {
  open: {
    async 'GET /dashboard/sign-in'({ user, query }, { db }) {
      const to = pathWithin(query.get('to'));
      if (user) return redirect(to);
      return form({ to, hasEnded: query.has('ended'), isSetUp: await hasOperator(db) });
    },
    'POST /dashboard/sign-in': submitPassword,
    'POST /dashboard/sign-in/code': submitCode,
  },
  user: { 'POST /dashboard/sign-out': signOut },
};

const halfWayMs = 5 * 60_000;

const credentials = z.object({
  email: z.string().trim().max(320),
  password: z.string().max(2000),
  to: z.string().optional(),
});

async function submitPassword(visit: PageVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, credentials);
  if (!checked.ok) return form({ to: '', error: 'Enter your email address and your password.' }, 422);
  const { email, password } = checked.values;
  const to = pathWithin(checked.values.to ?? null);
  const user = await findUserByEmail(parts.db, email);
  const login = {
    address: clientAddress(visit.context),
    account: user?.id ?? compareKey(email),
    browser: user && parts.knownBrowsers.idOf(visit.context, user),
  };
  const verdict = await parts.loginThrottle.attempt(login, async () => {
    const isKnown = login.browser !== null;
    const owner = isKnown ? login.account : clientNetwork(login.address);
    const isRight = await parts.passwords.verify(password, user?.passwordHash ?? null, { isKnown, owner });
    return isRight && user?.disabledAt === null;
  });
  if (typeof verdict === 'object') return form({ to, email, error: waitFor(verdict.waitMs) }, 429);
  if (!user || !verdict)
    return form({ to, email, error: 'The email address or the password is wrong.' }, 422);
  if (user.totpSecret !== null) {
    const { id: userId, passwordHash } = user;
    const note = { userId, passwordHash, visitor: visit.visitor, until: visit.now + halfWayMs };
    return codeForm({ to, halfWay: parts.seal.close(JSON.stringify(note)) });
  }
  return startSession(visit, parts, user, to);
}

const secondStep = z.object({
  code: z.string().trim().max(100),
  half_way: z.string().max(2000),
  to: z.string().optional(),
});

async function submitCode(visit: PageVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, secondStep);
  const user = checked.ok ? await halfWayUser(checked.values.half_way, visit, parts) : null;
  if (!checked.ok || !user?.totpSecret)
    return form({ to: '', error: 'The sign-in has expired. Sign in again.' }, 422);
  const { code, half_way: halfWay } = checked.values;
  const to = pathWithin(checked.values.to ?? null);
  const login = {
    address: clientAddress(visit.context),
    account: `code ${user.id}`,
    browser: parts.knownBrowsers.idOf(visit.context, user),
  };
  const verdict = await parts.loginThrottle.attempt(login, () => isRightCode(user, code, visit.now, parts));
  if (typeof verdict === 'object') return codeForm({ to, halfWay, error: waitFor(verdict.waitMs) }, 429);
  if (!verdict) return codeForm({ to, halfWay, error: 'The code is wrong or was already used.' }, 422);
  return startSession(visit, parts, user, to);
}

async function halfWayUser(halfWay: string, visit: PageVisit, { seal, db }: PageParts): Promise<User | null> {
  try {
    const { userId, passwordHash, visitor, until } = JSON.parse(seal.open(halfWay));
    if (visitor !== visit.visitor || visit.now >= until) return null;
    const user = await findUser(db, userId);
    return user?.disabledAt === null && user.passwordHash === passwordHash ? user : null;
  } catch {
    return null;
  }
}

async function isRightCode(user: User, code: string, now: number, { seal, db }: PageParts): Promise<boolean> {
  const step = totpStepOf(seal.open(user.totpSecret!), code, now);
  if (step !== null) return useTotpStep(db, user.id, step);
  return useRecoveryCode(db, user.id, recoveryCodeHash(code));
}

/** Refuses people all of whose organizations are paused. */
export async function startSession(
  visit: PageVisit,
  { db, sessions }: PageParts,
  user: User,
  to: string,
  flash: string | null = null,
): Promise<PageAnswer> {
  const pause = await pauseOfAll(db, user);
  if (pause) return form({ to, email: user.email, error: pausedMessage(pause) }, 403);
  await sessions.begin(visit.context, user);
  return redirect(to, flash);
}

/** The latest pause, if all organizations of the person are paused; else null. */
async function pauseOfAll(db: Db, user: User): Promise<Pause | null> {
  if (user.isOperator) return null;
  const pauses = (await listMemberships(db, user.id)).map(({ pause }) => pause);
  if (pauses.includes(null)) return null;
  return pauses.filter((pause) => pause !== null).sort((a, b) => b.since - a.since)[0] ?? null;
}

async function signOut({ context, session }: UserVisit, { sessions }: PageParts): Promise<PageAnswer> {
  await sessions.end(context, session);
  return redirect('/dashboard/sign-in', { tone: 'note', text: 'You are signed out.' });
}

interface Form {
  to: string;
  email?: string;
  error?: string;
  /** The browser had a session that has ended. */
  hasEnded?: boolean;
  isSetUp?: boolean;
}

function form(data: Form, status = 200): PageAnswer {
  return show('sign-in/sign-in', 'Sign in', data, { status });
}

function codeForm(data: { to: string; halfWay: string; error?: string }, status = 200): PageAnswer {
  return show('sign-in/code', 'Sign in', data, { status });
}

export function waitFor(ms: number): string {
  return `Too many attempts. Try again in ${span(Math.max(ms, 60_000))}.`;
}
