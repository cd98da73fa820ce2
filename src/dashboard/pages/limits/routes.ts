/** An organization's limits and today's use of them, and its IP pool. Operators change them. */
import { z } from 'zod';
import { dayOf } from '../../../accounts/limits.ts';
import { readUsage } from '../../../db/accept/daily-usage.ts';
import { findOrganization, setLimits } from '../../../db/accounts/organizations.ts';
import { assignPool, readPools } from '../../../db/queue/ip-pools.ts';
import { defaultPool } from '../../../mail/ip-pool.ts';
import { poolName } from '../../../settings/source-address-grammar.ts';
import { limitOf } from '../../form-amounts.ts';
import { showForm } from '../../form-page.ts';
import { checkForm, type Errors } from '../../forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect } from '../../page.ts';
import { notFound } from '../../page-error.ts';

/** The database stores limits as 32-bit integers. */
const limit = limitOf(2 ** 31 - 1);
const fields = z.object({ perSecond: limit, perDay: limit, emailsPerDay: limit });

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

export const limitsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/limits': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/limits'(visit, parts) {
      const { org, base } = visit;
      const checked = checkForm(visit.form, fields);
      if (!checked.ok) return list(visit, parts, checked.errors);
      const { perSecond: requestsPerSecond, perDay: requestsPerDay, emailsPerDay } = checked.values;
      await setLimits(parts.db, org.id, { requestsPerSecond, requestsPerDay, emailsPerDay });
      const flash = `The limits of ${org.name} were saved and apply within a second.`;
      return redirect(`${base}/limits`, flash);
    },
    async 'POST /dashboard/o/:org/pool'(visit, parts) {
      const { org, base, now } = visit;
      const checked = checkForm(visit.form, poolFields);
      if (!checked.ok) return list(visit, parts, checked.errors);
      const { pool } = checked.values;
      await assignPool(parts.db, org.id, pool);
      const isKnown = (await readPools(parts.db, now)).has(pool);
      const waits = isKnown ? '' : ' No running server has this pool, so the mail waits until one has.';
      const flash = `Mail of ${org.name} is sent from the pool ${pool} within a second.${waits}`;
      return redirect(`${base}/limits`, flash);
    },
  },
};

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
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
  return showForm('limits/limits', 'Limits', visit, { limits, pool, pools }, errors);
}

function shareOf(used: number, limit: number): number {
  return limit === 0 ? 1 : Math.min(used / limit, 1);
}
