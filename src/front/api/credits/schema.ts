/** The schemas of credits in requests and responses. */
import { z } from 'zod';
import { moment, nextId, success } from '#front/api/management.ts';
import { after, id, limit } from '#front/http/query.ts';

export const creditsQuery = z.object({ limit: limit(50, 1000), after: after(id) });

const entry = z
  .object({
    at: moment,
    change: z.int().meta({ description: 'The change of credits; negative if they were spent.' }),
    reason: z.string(),
    emailId: z.uuid().nullable().meta({ description: 'The email that the credits were spent on.' }),
    balance: z
      .int()
      .nullable()
      .meta({ description: 'The credits left after the change; null if unlimited.' }),
  })
  .meta({ description: 'An entry of the ledger.' });

export const creditSchemas = {
  CreditsAnswer: success({
    quota: z
      .object({
        limit: z.int().nullable().meta({ description: 'Credits for a month; null if unlimited.' }),
        used: z.int(),
        remaining: z.int().nullable().meta({ description: 'Null if unlimited.' }),
        renewsAt: moment,
      })
      .meta({ description: 'The monthly quota, which is spent first.' }),
    wallet: z.int().meta({ description: 'Credits that are spent when the quota is used up.' }),
    ledger: z.array(entry).meta({ description: 'All changes, newest first.' }),
    next: nextId,
  }),
  LedgerEntry: entry,
};
