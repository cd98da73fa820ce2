/** Credits as the answer has them: for the OpenAPI document too. */
import { z } from 'zod';
import { moment, nextId } from '../management.ts';
import { id, limit } from '../query.ts';

export const creditsQuery = z.object({ after: id.optional(), limit: limit(50, 1000) });

const entry = z
  .object({
    at: moment,
    change: z.int().meta({ description: 'By how much the credits changed: spent is below zero.' }),
    reason: z.string(),
    emailId: z.uuid().nullable().meta({ description: 'The email that spent them.' }),
    balance: z.int().nullable().meta({ description: 'What was there after it; null: unlimited.' }),
  })
  .meta({ description: 'An entry of the ledger.' });

const creditsAnswer = z.object({
  success: z.literal(true),
  quota: z
    .object({
      limit: z.int().nullable().meta({ description: 'Credits of a month; null: unlimited.' }),
      used: z.int(),
      remaining: z.int().nullable().meta({ description: 'Null: unlimited.' }),
      renewsAt: moment,
    })
    .meta({ description: 'What is spent first.' }),
  wallet: z.int().meta({ description: 'What is spent when the quota is used up.' }),
  ledger: z.array(entry).meta({ description: 'Every movement, the newest first.' }),
  next: nextId,
});

export type CreditsAnswer = z.input<typeof creditsAnswer>;

export const creditSchemas = { CreditsAnswer: creditsAnswer, LedgerEntry: entry };
