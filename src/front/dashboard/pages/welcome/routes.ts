/** Sets a password by a one-time link: the first one after an invitation, or a new one after a reset. */
import { setPasswordByLink } from '#accounts/people/people.ts';
import { findLink, type OneTimeLink } from '#accounts/rows/one-time.ts';
import { findUser, type User } from '#accounts/rows/users.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  type PageVisit,
  redirect,
  show,
} from '#front/dashboard/page.ts';
import { linkHash, linkIsOver, newPassword } from '#front/dashboard/pages/sign-in/one-time-page.ts';
import { startSession } from '#front/dashboard/pages/sign-in/routes.ts';

export const welcomePage: DashboardPage = {
  open: {
    'GET /dashboard/welcome/:token': async (visit, parts) => form(await linkOf(visit, parts)),
    'POST /dashboard/welcome/:token': setPassword,
  },
};

interface Guest {
  user: User;
  link: OneTimeLink;
}

async function setPassword(visit: PageVisit, parts: PageParts): Promise<PageAnswer> {
  const guest = await linkOf(visit, parts);
  const password = await newPassword(visit, parts, guest.user.email);
  if ('problem' in password) return form(guest, password.problem);
  const { hash } = password;
  if (!(await setPasswordByLink(parts.db, guest.link, hash, visit.now))) throw linkIsOver(advice);
  // The link does not replace the second factor.
  if (guest.user.totpSecret !== null)
    return redirect('/dashboard/sign-in', 'Your password is set. Sign in with it.');
  return startSession(
    visit,
    parts,
    { ...guest.user, passwordHash: hash },
    '/dashboard',
    'Your password is set.',
  );
}

function form({ user, link }: Guest, error?: string): PageAnswer {
  const isNew = link.purpose === 'invitation';
  const title = isNew ? `Welcome, ${user.name}` : 'Choose a new password';
  return show('welcome/welcome', title, { title, isNew, person: user, error }, { status: error ? 422 : 200 });
}

async function linkOf(visit: PageVisit, { db }: PageParts): Promise<Guest> {
  const link = await findLink(db, linkHash(visit), visit.now);
  const isForPassword = link?.purpose === 'invitation' || link?.purpose === 'reset';
  const user = isForPassword && link.userId ? await findUser(db, link.userId) : null;
  if (!link || !user || user.disabledAt !== null) throw linkIsOver(advice);
  return { link, user };
}

const advice =
  'It was used or has expired. If you have set your password, sign in. If not, ask for a new link.';
