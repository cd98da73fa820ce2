/** GET /api/public/credits: what an organization may still send, and its ledger. */
import type { Context } from 'koa';
import { iso } from '../../base/clock.ts';
import { listLedger, quotaState } from '../../db/accept/credit-ledger.ts';
import { findOrganization } from '../../db/accounts/organizations.ts';
import { type AddManagementRoutes, type Management, management, requireFound } from '../management.ts';
import { readQuery } from '../query.ts';
import { type CreditsAnswer, creditsQuery } from './schema.ts';

export const addCreditRoutes: AddManagementRoutes = (router, inBounds, parts) => {
  router.get(
    '/credits',
    inBounds,
    management(parts, (context, orgId) => show(context, orgId, parts)),
  );
};

async function show(
  context: Context,
  orgId: string,
  { db, clock }: Management,
): Promise<Omit<CreditsAnswer, 'success'>> {
  const { limit, after } = readQuery(context, creditsQuery);
  const org = requireFound(await findOrganization(db, orgId), 'organization');
  const entries = await listLedger(db, orgId, { limit: limit + 1, after });
  const page = entries.slice(0, limit);
  const quota = quotaState(org, clock.now());
  return {
    quota: { ...quota, renewsAt: iso(quota.renewsAt) },
    wallet: org.wallet,
    ledger: page.map(({ id, at, ...entry }) => ({ at: iso(at), ...entry })),
    next: entries.length > limit ? page.at(-1)!.id : null,
  };
}
