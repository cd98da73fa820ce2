/** The second factor: shown as a QR code, turned on by a code that proves the app has the secret, turned off with the password. */
import { renderSVG } from 'uqr';
import { newRecoveryCodes, newTotpSecret, totpStepOf, totpUri } from '#accounts/people/totp.ts';
import { setRecoveryCodes } from '#accounts/rows/one-time.ts';
import { endSessions } from '#accounts/rows/sessions-table.ts';
import { changeUser } from '#accounts/rows/users.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
  type UserVisit,
} from '#front/dashboard/page.ts';
import { pathWithin } from '#front/dashboard/security/sign-in-return.ts';
import { wrongPassword } from './routes.ts';

export const secondFactorPage: DashboardPage = {
  user: {
    'GET /dashboard/account/second-factor': (visit, parts) => offer(visit, parts, newTotpSecret()),
    'POST /dashboard/account/second-factor': turnOn,
    'POST /dashboard/account/second-factor/off': turnOff,
  },
};

/** `to`: the page to go on to, if the person came from one that requires a second factor. */
function offer(
  { user, query, form }: UserVisit,
  { seal }: PageParts,
  secret: string,
  errors: { code?: string; current?: string } = {},
): PageAnswer {
  const uri = totpUri(secret, user.email);
  const picture = `data:image/svg+xml,${encodeURIComponent(renderSVG(uri, { border: 2 }))}`;
  const sealed = seal.close(JSON.stringify({ userId: user.id, secret }));
  const readable = secret.replace(/(.{4})(?=.)/g, '$1 ');
  const to = pathWithin(form.get('to') ?? query.get('to') ?? '/dashboard/account');
  const data = { picture, sealed, readable, to, errors };
  return show('account/second-factor', 'Two-factor authentication', data);
}

async function turnOn(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const { user, form, session, now } = visit;
  const secret = offered(form.get('sealed') ?? '', visit, parts);
  if (secret === null)
    return offer(visit, parts, newTotpSecret(), { code: 'The code had expired. Scan this new one.' });
  const wrong = await wrongPassword(visit, parts);
  if (wrong) return offer(visit, parts, secret, { current: wrong });
  const step = totpStepOf(secret, form.get('code') ?? '', now);
  if (step === null)
    return offer(visit, parts, secret, {
      code: "The code is wrong. If it came from the app, check your phone's clock.",
    });
  const { codes, hashes } = newRecoveryCodes();
  await parts.db.transaction(async (trx) => {
    await changeUser(trx, user.id, { totpSecret: parts.seal.close(secret), totpStep: step });
    await setRecoveryCodes(trx, user.id, hashes);
    await endSessions(trx, user.id, session.id);
  });
  return show('account/recovery-codes', 'Recovery codes', { codes, to: pathWithin(form.get('to')) });
}

/** The secret that we showed to this person; null if the sealed text is not ours or belongs to someone else. */
function offered(sealed: string, { user }: UserVisit, { seal }: PageParts): string | null {
  try {
    const { userId, secret } = JSON.parse(seal.open(sealed));
    return userId === user.id ? secret : null;
  } catch {
    return null;
  }
}

async function turnOff(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const wrong = await wrongPassword(visit, parts);
  if (wrong)
    return redirect('/dashboard/account', {
      tone: 'bad',
      text: `${wrong} Two-factor authentication is still on.`,
    });
  await parts.db.transaction(async (trx) => {
    await changeUser(trx, visit.user.id, { totpSecret: null, totpStep: null });
    await setRecoveryCodes(trx, visit.user.id, []);
  });
  return redirect('/dashboard/account', 'Two-factor authentication is off.');
}
