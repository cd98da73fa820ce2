/** Credits: quota, wallet and ledger. Operators grant credits and set the quota, as `postern credits` does. */
import { z } from 'zod';
import { balanceOf, grant, listLedger, quotaState, setQuota } from '../../../db/accept/credit-ledger.ts';
import { findOrganization } from '../../../db/accounts/organizations.ts';
import { limitOf, wholeOf } from '../../form-amounts.ts';
import { showForm } from '../../form-page.ts';
import { checkForm, type Errors } from '../../forms.ts';
import { count } from '../../number-format.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect } from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { pageOf } from '../../pagination.ts';

const maxCredits = 999_999_999_999;
const quotaFields = z.object({ quota: limitOf(maxCredits) });

const grantFields = z.object({
  amount: z
    .string()
    .trim()
    .transform((text, context) => {
      const amount = wholeOf(text);
      if (amount) return amount;
      context.addIssue({
        code: 'custom',
        message: 'Enter a whole number; a negative one takes credits back.',
      });
      return z.NEVER;
    }),
});

export const creditsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/credits': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/credits/grant'(visit, parts) {
      const { org, base, form, now } = visit;
      const checked = checkForm(form, grantFields);
      if (!checked.ok) return list(visit, parts, checked.errors);
      const { amount } = checked.values;
      const changed = await parts.db.transaction((trx) => grant(trx, org.id, amount, now));
      if (!changed) return list(visit, parts, { amount: 'The wallet has fewer credits than that.' });
      return redirect(
        `${base}/credits`,
        `The wallet of ${org.name} now has ${count(changed.wallet)} credits.`,
      );
    },
    async 'POST /dashboard/o/:org/credits/quota'(visit, parts) {
      const { org, base, form, now } = visit;
      const checked = checkForm(form, quotaFields);
      if (!checked.ok) return list(visit, parts, checked.errors);
      const { quota } = checked.values;
      await parts.db.transaction((trx) => setQuota(trx, org.id, quota, now));
      const quotaText = quota === null ? 'can send without a quota' : `has ${count(quota)} credits per month`;
      return redirect(`${base}/credits`, `${org.name} now ${quotaText}.`);
    },
  },
};

const pageSize = 50;

async function list(visit: OrgVisit, { db, config }: PageParts, errors: Errors = {}) {
  const org = await findOrganization(db, visit.org.id);
  if (!org) throw notFound('organization');
  const ledger = await pageOf(visit, pageSize, (page) => listLedger(db, org.id, page));
  const quota = quotaState(org, visit.now);
  const used = quota.limit ? Math.min(quota.used / quota.limit, 1) : 0;
  const data = {
    ...ledger,
    quota,
    used,
    wallet: org.wallet,
    balance: balanceOf({ ...org, quotaUsed: quota.used }),
    tone: toneOf(used, config.creditsLow / 100),
  };
  return showForm('credits/credits', 'Credits', visit, data, errors);
}

function toneOf(used: number, lowShare: number): string {
  if (used >= 1) return 'bad';
  return used >= 1 - lowShare ? 'warn' : '';
}
