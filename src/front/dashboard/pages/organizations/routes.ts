/** The start page, and the list of organizations. Operators see all of them and create new ones. */
import { z } from 'zod';
import { makeOrganization } from '#accounts/create-organization.ts';
import { balanceOf, quotaState } from '#accounts/rows/credit-ledger.ts';
import { listMemberships, newestOrganizations } from '#accounts/rows/memberships.ts';
import { listWithFigures, maxWaiting, organizationOrders } from '#accounts/rows/organization-figures.ts';
import { NameTaken } from '#accounts/rows/organizations.ts';
import { checkForm, oneLine, valuesOf } from '#front/dashboard/forms.ts';
import { type DashboardPage, type PageParts, redirect, show, type UserVisit } from '#front/dashboard/page.ts';
import { pageOf } from '#front/dashboard/pagination.ts';
import { presentStatus } from '#front/dashboard/server-status.ts';
import { hourMs } from '#mail/record/rows/statistics.ts';
import type { Db } from '#platform/database/engine/open.ts';

export const organizationsPage: DashboardPage = {
  user: {
    /** A person with exactly one organization goes straight to it. */
    async 'GET /dashboard'({ user }, { db }) {
      const some = user.isOperator ? await newestOrganizations(db, 2) : await listMemberships(db, user.id);
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
const shownHours = 7 * 24;

async function list(visit: UserVisit, { db, operatorJobs, isDevelopment }: PageParts, error?: string) {
  const { user, query, context } = visit;
  if (!user.isOperator)
    return show('organizations/memberships', 'Organizations', { rows: await listMemberships(db, user.id) });
  const text = (query.get('q') ?? '').trim();
  const name = context.method === 'POST' ? (valuesOf(visit.form).name ?? '') : '';
  const server = presentStatus(await operatorJobs.status(), isDevelopment);
  const data = { ...(await tableOf(visit, db, text)), text, error, name, server };
  return show('organizations/organizations', 'Organizations', data, { status: error ? 422 : 200 });
}

/** Only the newest have pages: by a figure, those with the most (or the fewest credits) are what an operator looks for. */
async function tableOf(visit: UserVisit, db: Db, text: string) {
  const { query, now } = visit;
  const order = organizationOrders.find((one) => one === query.get('sort')) ?? 'newest';
  const since = now - (now % hourMs) - shownHours * hourMs;
  const read = (page: { after?: string | undefined; limit: number }) =>
    listWithFigures(db, { text, order, since, ...page });
  const page =
    order === 'newest'
      ? await pageOf(visit, pageSize, read)
      : { rows: await read({ limit: pageSize }), next: null, isFirst: true };
  const rows = page.rows.map(({ org, ...figures }) => {
    const quotaUsed = quotaState(org, now).used;
    return {
      ...figures,
      name: org.name,
      isPaused: org.pause !== null,
      credits: balanceOf({ ...org, quotaUsed }),
    };
  });
  return { ...page, rows, order, isPart: order !== 'newest' && rows.length === pageSize, maxWaiting };
}
