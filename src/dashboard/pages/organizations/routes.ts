/** The start page, and the list of organizations. Operators see all of them and create new ones. */
import { z } from 'zod';
import { makeOrganization } from '../../../accounts/create-organization.ts';
import { listMemberships, searchOrganizations } from '../../../db/accounts/memberships.ts';
import { NameTaken } from '../../../db/accounts/organizations.ts';
import { checkForm, oneLine, valuesOf } from '../../forms.ts';
import { type DashboardPage, type PageParts, redirect, show, type UserVisit } from '../../page.ts';
import { pageOf } from '../../pagination.ts';
import { presentStatus } from '../../server-status.ts';

export const organizationsPage: DashboardPage = {
  user: {
    /** A person with exactly one organization goes straight to it. */
    async 'GET /dashboard'({ user }, { db }) {
      const some = user.isOperator
        ? await searchOrganizations(db, { text: '', limit: 2 })
        : await listMemberships(db, user.id);
      return redirect(some.length === 1 ? `/dashboard/o/${some[0]!.id}` : '/dashboard/organizations');
    },
    'GET /dashboard/organizations': (visit, parts) => list(visit, parts),
  },
  operator: {
    async 'POST /dashboard/organizations'(visit, parts) {
      const checked = checkForm(visit.form, z.object({ name: oneLine('a name') }));
      if (!checked.ok) return list(visit, parts, checked.errors.name);
      const made = await makeOrganization(parts.db, checked.values, visit.now).catch((error) => {
        if (error instanceof NameTaken) return null;
        throw error;
      });
      if (!made) return list(visit, parts, 'Another organization has this name. Choose a different one.');
      const { id, name } = made;
      return redirect(`/dashboard/o/${id}`, `${name} was created and can send without limits.`);
    },
  },
};

const pageSize = 50;

async function list(visit: UserVisit, { db, operatorJobs, isDevelopment }: PageParts, error?: string) {
  const { user, query, context } = visit;
  const text = (query.get('q') ?? '').trim();
  const shown = user.isOperator
    ? await pageOf(visit, pageSize, (page) => searchOrganizations(db, { text, ...page }))
    : { rows: await listMemberships(db, user.id), next: null, isFirst: true };
  const name = context.method === 'POST' ? (valuesOf(visit.form).name ?? '') : '';
  const server = user.isOperator ? presentStatus(await operatorJobs.status(), isDevelopment) : null;
  const data = { ...shown, text, error, name, server };
  return show('organizations/organizations', 'Organizations', data, { status: error ? 422 : 200 });
}
