/** Suppressions as requests and answers have them: for the OpenAPI document too. */
import { z } from 'zod';
import { domainOf } from '../../mail/address.ts';
import { moment, oneLine } from '../management.ts';
import { limit } from '../query.ts';
import { rule } from '../send/schema-rule.ts';

const longestCursor = 1024;

/** The key of the last address, in base64url: what it is made of is nobody's business. */
const cursor = z
  .string()
  .check(rule((text) => keyIn(text) !== null, 'the `next` of an answer'))
  .transform((text) => keyIn(text)!);

export function cursorOf(key: string): string {
  return Buffer.from(key).toString('base64url');
}

function keyIn(text: string): string | null {
  const key = Buffer.from(text, 'base64url').toString();
  const isOurs = text.length <= longestCursor && cursorOf(key) === text && /^[^\p{Cc}]+$/u.test(key);
  return isOurs ? key : null;
}

export const suppressionsQuery = z.object({
  search: oneLine(320).optional(),
  after: cursor.optional(),
  limit: limit(100, 1000),
});

const address = z.string().meta({ format: 'idn-email', examples: ['ann@example.org'] });

export const newSuppression = z.object({
  address: address.check(rule((text) => domainOf(text) !== null, 'an email address')),
  reason: oneLine(200).default('manual').meta({ description: 'Why, for whoever looks at the list.' }),
});

const suppression = z
  .object({
    address,
    reason: z.string().meta({ description: 'What was given, or `imported`, or what the address did.' }),
    createdAt: moment,
  })
  .meta({ description: 'An address that is not written to.' });

const suppressionAnswer = z.object({ success: z.literal(true), suppression });

const addedAnswer = z.object({
  success: z.literal(true),
  added: z.boolean().meta({ description: 'False: it was on the list before, and stays as it was.' }),
  suppression,
});

const suppressionsAnswer = z.object({
  success: z.literal(true),
  suppressions: z.array(suppression).meta({ description: 'By address.' }),
  next: z
    .string()
    .nullable()
    .meta({
      description:
        'Where to go on: give it as `after`. Null: that was all. With `search`, `suppressions` may be shorter than `limit`, ' +
        'or empty, and there be more all the same.',
    }),
});

const importAnswer = z.object({
  success: z.literal(true),
  added: z.int().meta({ description: 'How many are on the list by this.' }),
  before: z.int().meta({ description: 'How many were on it before, and stay as they were.' }),
});

export type SuppressionOut = z.input<typeof suppression>;

export const suppressionSchemas = {
  Suppression: suppression,
  SuppressionAnswer: suppressionAnswer,
  SuppressionAddedAnswer: addedAnswer,
  SuppressionsAnswer: suppressionsAnswer,
  ImportAnswer: importAnswer,
};
