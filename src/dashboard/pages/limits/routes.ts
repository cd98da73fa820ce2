/** An organization's limits and today's use of them, and its IP pool. Operators change them. */
import { z } from 'zod';
import { dayOf } from '../../../accounts/limits.ts';
import { readUsage } from '../../../db/accept/daily-usage.ts';
import { findOrganization, setLimits } from '../../../db/accounts/organizations.ts';
import { assignPool, readPools } from '../../../db/queue/ip-pools.ts';
import { defaultPool } from '../../../mail/ip-pool.ts';
import { poolName } from '../../../settings/source-address-grammar.ts';
import { limitOf } from '../../form-amounts.ts';
import { checkForm, type Errors, valuesOf } from '../../forms.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
} from '../../page.ts';
import { notFound } from '../../page-error.ts';

export const limitsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/limits': (visit, parts) => list(visit, parts),
    'POST /dashboard/o/:org/limits': change,
    'POST /dashboard/o/:org/pool': setPool,
  },
};

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const org = await findOrganization(db, visit.org.id);
  if (!org) throw notFound('organization');
  const today = await readUsage(db, org.id, dayOf(visit.now));
  const limits = [
    { name: 'perSecond', title: 'API requests per second', limit: org.requestsPerSecond, used: null },
    { name: 'perDay', title: 'API requests per day', limit: org.requestsPerDay, used: today.requests },
    { name: 'emailsPerDay', title: 'Recipients per day', limit: org.emailsPerDay, used: today.emails },
  ].map((one) => ({
    ...one,
    share: one.used !== null && one.limit !== null ? shareOf(one.used, one.limit) : null,
  }));
  const pools = [...(await readPools(db, visit.now))].sort();
  const pool = org.pool ?? defaultPool;
  const data = { limits, pool, pools, errors, values: valuesOf(visit.form) };
  return show('limits/limits', 'Limits', data, { status: Object.keys(errors).length > 0 ? 422 : 200 });
}

function shareOf(used: number, limit: number): number {
  return limit === 0 ? 1 : Math.min(used / limit, 1);
}

/** The database stores limits as 32-bit integers. */
const limit = limitOf(2 ** 31 - 1);
const fields = z.object({ perSecond: limit, perDay: limit, emailsPerDay: limit });

async function change(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, fields);
  if (!checked.ok) return list(visit, parts, checked.errors);
  const { perSecond: requestsPerSecond, perDay: requestsPerDay, emailsPerDay } = checked.values;
  await setLimits(parts.db, visit.org.id, { requestsPerSecond, requestsPerDay, emailsPerDay });
  return redirect(
    `${visit.base}/limits`,
    `The limits of ${visit.org.name} were saved and apply within a second.`,
  );
}

const poolFields = z.object({
  pool: z
    .string()
    .trim()
    .transform((text, context) => {
      try {
        return text === '' ? defaultPool : poolName.read(text);
      } catch {
        const message = 'Enter up to 40 letters, digits and hyphens, such as transactional or bulk-2.';
        context.addIssue({ code: 'custom', message });
        return z.NEVER;
      }
    }),
});

async function setPool(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, poolFields);
  if (!checked.ok) return list(visit, parts, checked.errors);
  const { pool } = checked.values;
  await assignPool(parts.db, visit.org.id, pool);
  const isThere = (await readPools(parts.db, visit.now)).has(pool);
  const waits = isThere ? '' : ' No running server has this pool, so the mail waits until one has.';
  return redirect(
    `${visit.base}/limits`,
    `Mail of ${visit.org.name} is sent from the pool ${pool} within a second.${waits}`,
  );
}
