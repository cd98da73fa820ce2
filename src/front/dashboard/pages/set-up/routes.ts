/** Creates the first operator, by the one-time link that the first start prints. */
import { z } from 'zod';
import { setUp } from '#accounts/people/people.ts';
import { findLink } from '#accounts/rows/one-time.ts';
import { hasOrganizations, NameTaken } from '#accounts/rows/organizations.ts';
import { hasOperator } from '#accounts/rows/users.ts';
import { checkForm, emailField, oneLine, valuesOf } from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  type PageVisit,
  redirect,
  show,
} from '#front/dashboard/page.ts';
import { linkHash, linkIsOver, newPassword } from '#front/dashboard/pages/sign-in/one-time-page.ts';

export const setUpPage: DashboardPage = {
  open: {
    'GET /dashboard/set-up/:token': async (visit, parts) => {
      await requireLink(visit, parts);
      return form(visit, parts, {});
    },
    'POST /dashboard/set-up/:token': make,
  },
};

const fields = z.object({
  name: oneLine('your name'),
  email: emailField,
  organization: z.union([z.literal(''), oneLine('a name')]).default(''),
});

async function make(visit: PageVisit, parts: PageParts): Promise<PageAnswer> {
  const hash = await requireLink(visit, parts);
  const checked = checkForm(visit.form, fields);
  if (!checked.ok) return form(visit, parts, checked.errors);
  const first = checked.values;
  const password = await newPassword(visit, parts, first.email);
  if ('problem' in password) return form(visit, parts, { password: password.problem });
  const { hash: passwordHash } = password;
  const id = await setUp(parts.db, hash, { ...first, passwordHash }, visit.now).catch((error) => {
    if (error instanceof NameTaken) return 'name taken' as const;
    throw error;
  });
  if (id === 'name taken') {
    return form(visit, parts, {
      organization: 'Another organization has this name. Choose a different one.',
    });
  }
  if (id === null) throw linkIsOver(advice);
  await parts.sessions.begin(visit.context, { id, passwordHash });
  return redirect('/dashboard', `Welcome, ${first.name}. Postern is set up.`);
}

async function form(
  visit: PageVisit,
  { db }: PageParts,
  errors: Record<string, string>,
): Promise<PageAnswer> {
  const isFirst = !(await hasOrganizations(db));
  const { password: _, ...values } = valuesOf(visit.form);
  return show('set-up/set-up', 'Set up Postern', { isFirst, values, errors });
}

/** Returns the link's hash; throws if the link is not valid. */
async function requireLink(visit: PageVisit, { db }: PageParts): Promise<string> {
  const hash = linkHash(visit);
  const link = await findLink(db, hash, visit.now);
  if (link?.purpose !== 'set-up' || (await hasOperator(db))) throw linkIsOver(advice);
  return hash;
}

const advice =
  'A set-up link works once. If Postern is already set up, sign in. If not, restart Postern: it prints a new link.';
