/**
 * Signs a browser in by a link: of `postern open`, once; or of `postern dev`, until the next one replaces it, because a developer
 * opens it as often as they like. Only the owner of the data can make either.
 */
import { findLink, useLink } from '#accounts/rows/one-time.ts';
import { findUser } from '#accounts/rows/users.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  type PageVisit,
  redirect,
} from '#front/dashboard/page.ts';
import { pathWithin } from '#front/dashboard/security/sign-in-return.ts';
import { linkHash, linkIsOver } from './one-time-page.ts';

export const signInByLinkPage: DashboardPage = {
  open: { 'GET /dashboard/sign-in/:token': signIn },
};

async function signIn(visit: PageVisit, { db, sessions }: PageParts): Promise<PageAnswer> {
  const { context, query, now } = visit;
  const link = await findLink(db, linkHash(visit), now);
  const isOpen =
    link?.purpose === 'sign-in' ||
    (link?.purpose === 'open' && (await db.transaction((trx) => useLink(trx, link.hash, now))));
  const user = isOpen && link.userId ? await findUser(db, link.userId) : null;
  if (!user || user.disabledAt !== null) {
    const advice = '`postern open` prints another; of `postern dev`, the last start printed a newer one.';
    throw linkIsOver(advice);
  }
  await sessions.begin(context, user);
  return redirect(pathWithin(query.get('to')));
}
