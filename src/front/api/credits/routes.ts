/** GET /api/public/credits: the credits that an organization has left, and its ledger. */

import { listLedger, quotaState } from '#accounts/rows/credit-ledger.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import { answer, readPage, requireFound, resource } from '#front/api/management.ts';
import { iso } from '#platform/base/clock.ts';
import { creditSchemas, creditsQuery } from './schema.ts';

export const creditEndpoints = [
  resource('Credits').collection({
    route: 'GET /credits',
    operationId: 'getCredits',
    summary: 'Show credits',
    description:
      'The credits left in the quota and in the wallet, and the ledger of all changes, newest first.',
    query: creditsQuery,
    response: answer('The credits.', creditSchemas.CreditsAnswer),
    async respond({ db, orgId, query, now }) {
      const org = requireFound(await findOrganization(db, orgId), 'organization');
      const { page, next } = await readPage(query, (rows) => listLedger(db, orgId, rows));
      const quota = quotaState(org, now);
      return {
        quota: { ...quota, renewsAt: iso(quota.renewsAt) },
        wallet: org.wallet,
        ledger: page.map(({ id, at, ...entry }) => ({ at: iso(at), ...entry })),
        next,
      };
    },
  }),
];
