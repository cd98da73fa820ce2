/**
 * The organization's limits and use: credits with their ledger, limits, the IP pool. Operators change them, as
 * `postern credits` and `postern org` do.
 */
import { z } from 'zod';
import { dayOf } from '#accounts/limits.ts';
import { balanceOf, grant, ledgerByDay, quotaState, setQuota } from '#accounts/rows/credit-ledger.ts';
import { readUsage } from '#accounts/rows/daily-usage.ts';
import { findOrganization, type Organization, setLimits } from '#accounts/rows/organizations.ts';
import { limitOf, wholeOf } from '#front/dashboard/form-amounts.ts';
import { showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors, parsedBy } from '#front/dashboard/forms.ts';
import { count } from '#front/dashboard/number-format.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { assignPool, readPools } from '#mail/queue/rows/ip-pools.ts';
import { iso } from '#platform/base/clock.ts';
import { poolName } from '#platform/settings/source-address-grammar.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';

const quotaFields = z.object({ quota: limitOf(0, 999_999_999_999) });

const grantFields = z.object({
  amount: parsedBy(
    (text) => wholeOf(text) || null,
    'Enter a whole number; a negative one takes credits back.',
  ),
});

/** The database stores limits as 32-bit integers. With 0 every request would be refused, which is what a pause is for. */
const limit = limitOf(1, 2 ** 31 - 1);
const limitFields = z.object({ perSecond: limit, perDay: limit, emailsPerDay: limit });

const poolFields = z.object({
  pool: parsedBy((text) => {
    try {
      return text === '' ? defaultPool : poolName.read(text);
    } catch {
      return null;
    }
  }, 'Enter up to 40 letters, digits and hyphens, such as transactional or bulk-2.'),
});

export const usagePage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/usage': (visit, parts) => page(visit, parts),
    async 'POST /dashboard/o/:org/usage/grant'(visit, parts) {
      const { org, base, form, now } = visit;
      const checked = checkForm(form, grantFields);
      if (!checked.ok) return page(visit, parts, checked.errors);
      const { amount } = checked.values;
      const changed = await parts.db.transaction((trx) => grant(trx, org.id, amount, now));
      if (!changed) return page(visit, parts, { amount: 'The wallet has fewer credits than that.' });
      return redirect(`${base}/usage`, `The wallet of ${org.name} now has ${count(changed.wallet)} credits.`);
    },
    async 'POST /dashboard/o/:org/usage/quota'(visit, parts) {
      const { org, base, form, now } = visit;
      const checked = checkForm(form, quotaFields);
      if (!checked.ok) return page(visit, parts, checked.errors);
      const { quota } = checked.values;
      await parts.db.transaction((trx) => setQuota(trx, org.id, quota, now));
      const quotaText = quota === null ? 'can send without a quota' : `has ${count(quota)} credits per month`;
      return redirect(`${base}/usage`, `${org.name} now ${quotaText}.`);
    },
    async 'POST /dashboard/o/:org/usage/limits'(visit, parts) {
      const { org, base } = visit;
      const checked = checkForm(visit.form, limitFields);
      if (!checked.ok) return page(visit, parts, checked.errors);
      const { perSecond: requestsPerSecond, perDay: requestsPerDay, emailsPerDay } = checked.values;
      await setLimits(parts.db, org.id, { requestsPerSecond, requestsPerDay, emailsPerDay });
      return redirect(`${base}/usage`, `The limits of ${org.name} were saved and apply within a second.`);
    },
    async 'POST /dashboard/o/:org/usage/pool'(visit, parts) {
      const { org, base, now } = visit;
      const checked = checkForm(visit.form, poolFields);
      if (!checked.ok) return page(visit, parts, checked.errors);
      const { pool } = checked.values;
      await assignPool(parts.db, org.id, pool);
      const isKnown = (await readPools(parts.db, now)).has(pool);
      const waits = isKnown ? '' : ' No running server has this pool, so the mail waits until one has.';
      const flash = `Mail of ${org.name} is sent from the pool ${pool} within a second.${waits}`;
      return redirect(`${base}/usage`, flash);
    },
  },
};

const daysAtOnce = 31;
/** A day with more entries is still shown whole. */
const maxEntries = 100_000;
/** After every id (platform/database/tables/time-of-id.ts). */
const endOfTime = 2 ** 48 - 1;

async function page(visit: OrgVisit, { db, config }: PageParts, errors: Errors = {}) {
  const org = await findOrganization(db, visit.org.id);
  if (!org) throw notFound('organization');
  const before = Number(visit.query.get('before') ?? endOfTime);
  if (!Number.isInteger(before) || before < 0 || before > endOfTime) throw notFound();
  const { days, isMore } = await ledgerByDay(db, org.id, { before, limit: daysAtOnce, maxEntries });
  const today = await readUsage(db, org.id, dayOf(visit.now));
  const quota = quotaState(org, visit.now);
  const data = {
    days: days.map(({ day, reasons, balance }) => ({
      day: iso(day).slice(0, 10),
      balance,
      sent: reasons.find(({ reason }) => reason === 'send')?.entries ?? 0,
      changes: reasons.map(({ reason, change }) => ({ change, words: reasonWords[reason] ?? reason })),
    })),
    next: isMore ? `?before=${days.at(-1)!.day}` : null,
    isFirst: before === endOfTime,
    quota,
    quotaBar: barOf(quota.used, quota.limit, 1 - config.creditsLow / 100),
    wallet: org.wallet,
    balance: balanceOf({ ...org, quotaUsed: quota.used }),
    limits: limitsOf(org, today),
    pool: org.pool ?? defaultPool,
    pools: [...(await readPools(db, visit.now))].sort(),
  };
  return showForm('usage/usage', 'Usage', visit, data, errors);
}

const reasonWords: Record<string, string> = {
  send: 'sent',
  wallet: 'granted to the wallet',
  canceled: 'given back for canceled mail',
};

/** Requests per second are not counted. */
function limitsOf(org: Organization, today: { requests: number; emails: number }) {
  const limits = [
    { name: 'perSecond', title: 'API requests per second', limit: org.requestsPerSecond, used: null },
    { name: 'perDay', title: 'API requests per day', limit: org.requestsPerDay, used: today.requests },
    { name: 'emailsPerDay', title: 'Recipients per day', limit: org.emailsPerDay, used: today.emails },
  ];
  return limits.map((one) => ({ ...one, bar: one.used === null ? null : barOf(one.used, one.limit, 0.9) }));
}

/** How full a bar is, from 0 to 1; null without a limit. From `warnAt` on it has another colour. */
function barOf(used: number, max: number | null, warnAt: number) {
  if (max === null) return null;
  const share = max === 0 ? 1 : Math.min(used / max, 1);
  return { share, tone: share >= 1 ? 'bad' : share >= warnAt ? 'warn' : '' };
}
