/**
 * Signs a browser in by a link: of `postern open`, once; or of `postern dev`, until the next one replaces it, because a developer
 * opens it as often as they like. Only the owner of the data can make either.
 */
import { tokenHash } from '#accounts/people/one-time-links.ts';
import { findLink, useLink } from '#accounts/rows/one-time.ts';
import { findUser } from '#accounts/rows/users.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  type PageVisit,
  redirect,
} from '#front/dashboard/page.ts';
import { PageError } from '#front/dashboard/page-error.ts';
import { pathWithin } from '#front/dashboard/security/sign-in-return.ts';

export const signInByLinkPage: DashboardPage = {
  open: { 'GET /dashboard/sign-in/:token': signIn },
};

async function signIn({ context, query, now }: PageVisit, { db, sessions }: PageParts): Promise<PageAnswer> {
  const { token } = context.params as { token: string };
  const link = await findLink(db, tokenHash(token), now);
  const isOpen =
    link?.purpose === 'sign-in' ||
    (link?.purpose === 'open' && (await db.transaction((trx) => useLink(trx, link.hash, now))));
  const user = isOpen && link.userId ? await findUser(db, link.userId) : null;
  if (!user || user.disabledAt !== null) {
    const advice = '`postern open` prints another; of `postern dev`, the last start printed a newer one.';
    throw new PageError(404, 'This link is no longer valid', advice);
  }
  await sessions.begin(context, user);
  return redirect(pathWithin(query.get('to')));
}
