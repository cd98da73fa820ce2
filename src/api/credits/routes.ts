/** GET /api/public/credits: the credits that an organization has left, and its ledger. */
import type { Context } from 'koa';
import { iso } from '../../base/clock.ts';
import { listLedger, quotaState } from '../../db/accept/credit-ledger.ts';
import { findOrganization } from '../../db/accounts/organizations.ts';
import { invalidLimit, jsonResponse } from '../endpoint.ts';
import { exampleId, exampleTime, type Management, managementEndpoints, requireFound } from '../management.ts';
import { readQuery } from '../query.ts';
import { type CreditsAnswer, creditSchemas, creditsQuery } from './schema.ts';

export const creditEndpoints = managementEndpoints('Credits', [
  {
    route: 'GET /credits',
    operationId: 'getCredits',
    summary: 'Show credits',
    description:
      'The credits left in the quota and in the wallet, and the ledger of all changes, newest first.',
    query: creditsQuery,
    response: jsonResponse('The credits.', creditSchemas.CreditsAnswer, 'A quota of ten thousand', {
      success: true,
      quota: { limit: 10000, used: 0, remaining: 10000, renewsAt: '2026-04-02T08:15:30.120Z' },
      wallet: 0,
      ledger: [{ at: exampleTime, change: 10000, reason: 'quota 10000', emailId: null, balance: 10000 }],
      next: exampleId,
    }),
    errors: { VALIDATION_ERROR: invalidLimit(1000) },
    respond: show,
  },
]);

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
