/** The signed-in person's account: name, password, sessions. The second factor is in second-factor.ts. */
import { z } from 'zod';
import { passwordProblem } from '#accounts/people/passwords.ts';
import { countRecoveryCodes, endLinks } from '#accounts/rows/one-time.ts';
import { endSession, endSessions, listSessions } from '#accounts/rows/sessions-table.ts';
import { changeUser } from '#accounts/rows/users.ts';
import { checkForm, type Errors, oneLine } from '#front/dashboard/forms.ts';
import { agentName } from '#front/dashboard/number-format.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
  type UserVisit,
} from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';

export const accountPage: DashboardPage = {
  user: {
    'GET /dashboard/account': (visit, parts) => account(visit, parts),
    'POST /dashboard/account/name': changeName,
    'POST /dashboard/account/password': changePassword,
    'POST /dashboard/account/sessions/end': endOne,
    'POST /dashboard/account/sessions/end-others': endOthers,
  },
};

async function account(visit: UserVisit, { db }: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const { user, session } = visit;
  const sessions = (await listSessions(db, user.id)).map((one) => ({
    ...one,
    agentName: agentName(one.agent),
    isThis: one.id === session.id,
  }));
  const codesLeft = user.totpSecret === null ? 0 : await countRecoveryCodes(db, user.id);
  return show('account/account', 'Your account', { sessions, codesLeft, errors });
}

async function changeName(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, z.object({ name: oneLine('your name') }));
  if (!checked.ok) return account(visit, parts, checked.errors);
  await changeUser(parts.db, visit.user.id, checked.values);
  return redirect('/dashboard/account', 'Your name has been changed.');
}

async function changePassword(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const { user, session, form } = visit;
  const password = form.get('password') ?? '';
  const wrong = await wrongPassword(visit, parts);
  if (wrong) return account(visit, parts, { current: wrong });
  const problem = passwordProblem(password, user.email);
  if (problem) return account(visit, parts, { password: problem });
  const passwordHash = await parts.passwords.hash(password, user.id);
  const ended = await parts.db.transaction(async (trx) => {
    await changeUser(trx, user.id, { passwordHash });
    // Somebody else may have asked for a reset, and have its link.
    await endLinks(trx, user.id);
    return endSessions(trx, user.id, session.id);
  });
  parts.knownBrowsers.remember(visit.context, { id: user.id, passwordHash });
  const also = ended > 0 ? ' Your other sessions have ended.' : '';
  return redirect('/dashboard/account', `Your password has been changed.${also}`);
}

/** Checks the current password that a form asks for, throttled like a sign-in. Returns what is wrong; null if it is right. */
export async function wrongPassword(visit: UserVisit, parts: PageParts): Promise<string | null> {
  const { user, form, context } = visit;
  const browser = parts.knownBrowsers.idOf(context, user);
  const login = { address: clientAddress(context), account: user.id, browser };
  const verdict = await parts.loginThrottle.attempt(login, () =>
    parts.passwords.verify(form.get('current') ?? '', user.passwordHash, { isKnown: true, owner: user.id }),
  );
  if (typeof verdict === 'object') return 'Too many failed attempts. Try again in a few minutes.';
  return verdict ? null : 'The password is wrong.';
}

async function endOne(
  { user, form, session, context }: UserVisit,
  { db, sessions }: PageParts,
): Promise<PageAnswer> {
  const id = form.get('id') ?? '';
  if (id === session.id) {
    await sessions.end(context, session);
    return redirect('/dashboard/sign-in', { tone: 'note', text: 'You are signed out.' });
  }
  const isId = z.guid().safeParse(id).success;
  if (!isId || !(await endSession(db, user.id, id))) throw notFound('session');
  return redirect('/dashboard/account', 'The session has ended.');
}

async function endOthers({ user, session }: UserVisit, { db }: PageParts): Promise<PageAnswer> {
  await endSessions(db, user.id, session.id);
  return redirect('/dashboard/account', 'All other sessions have ended.');
}
