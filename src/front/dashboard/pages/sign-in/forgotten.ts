/**
 * Mails a link to people who have forgotten their password, if this server can send mail to its users. The answer is the same, and
 * as fast, whether an account has the address or not.
 */
import { z } from 'zod';
import { findUserByEmail } from '#accounts/rows/users.ts';
import { checkForm, type Errors, emailField, valuesOf } from '#front/dashboard/forms.ts';
import { type DashboardPage, type PageParts, type PageVisit, redirect, show } from '#front/dashboard/page.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';
import { compareKey } from '#platform/values/address.ts';
import { waitFor } from './routes.ts';

export const forgottenPage: DashboardPage = {
  open: {
    'GET /dashboard/forgotten': (visit, parts) => form(visit, parts),
    'POST /dashboard/forgotten': mailLink,
  },
};

async function mailLink(visit: PageVisit, parts: PageParts) {
  const { db, linkMails, loginThrottle, onError } = parts;
  const checked = checkForm(visit.form, z.object({ email: emailField }));
  if (!checked.ok) return form(visit, parts, checked.errors);
  const { email } = checked.values;
  const asked = {
    address: clientAddress(visit.context),
    account: `reset ${compareKey(email)}`,
    browser: null,
  };
  // Each request counts like a wrong password.
  const verdict = await loginThrottle.attempt(asked, async () => false);
  if (typeof verdict === 'object') return form(visit, parts, { email: waitFor(verdict.waitMs) });
  // Not awaited: how long it takes would tell who has an account.
  void findUserByEmail(db, email)
    .then(async (user) => {
      if (user?.disabledAt === null) await linkMails.reset(user);
    })
    .catch((error) => onError('a reset could not be mailed', error));
  const text = `If ${email} has an account here, a link to choose a new password is on its way. It works for a day.`;
  return redirect('/dashboard/sign-in', { tone: 'note', text });
}

async function form({ form }: PageVisit, { linkMails }: PageParts, errors: Errors = {}) {
  const canMail = (await linkMails.problem()) === null;
  return show('sign-in/forgotten', 'Forgotten password', { canMail, errors, values: valuesOf(form) });
}
