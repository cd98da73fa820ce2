/** Creates the first operator, by the one-time link that the first start prints. */
import { z } from 'zod';
import { tokenHash } from '#accounts/people/one-time-links.ts';
import { passwordProblem } from '#accounts/people/passwords.ts';
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
import { PageError } from '#front/dashboard/page-error.ts';

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
  password: z.string({ error: 'Choose a password.' }),
  organization: z.union([z.literal(''), oneLine('a name')]).default(''),
});

async function make(visit: PageVisit, parts: PageParts): Promise<PageAnswer> {
  const hash = await requireLink(visit, parts);
  const checked = checkForm(visit.form, fields);
  if (!checked.ok) return form(visit, parts, checked.errors);
  const { password, ...first } = checked.values;
  const problem = passwordProblem(password, first.email);
  if (problem) return form(visit, parts, { password: problem });
  const passwordHash = await parts.passwords.hash(password);
  const id = await setUp(parts.db, hash, { ...first, passwordHash }, visit.now).catch((error) => {
    if (error instanceof NameTaken) return 'name taken' as const;
    throw error;
  });
  if (id === 'name taken') {
    return form(visit, parts, {
      organization: 'Another organization has this name. Choose a different one.',
    });
  }
  if (id === null) throw used();
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
async function requireLink({ context, now }: PageVisit, { db }: PageParts): Promise<string> {
  const hash = tokenHash((context.params as { token: string }).token);
  const link = await findLink(db, hash, now);
  if (link?.purpose !== 'set-up' || (await hasOperator(db))) throw used();
  return hash;
}

function used(): PageError {
  return new PageError(
    404,
    'This link is no longer valid',
    'A set-up link works once. If Postern is already set up, sign in. If not, restart Postern: it prints a new link.',
  );
}
