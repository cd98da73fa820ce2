/** The schemas of suppressions in requests and responses. */
import { z } from 'zod';
import { defaultReason } from '#accounts/suppression-list.ts';
import { moment, oneLine, success } from '#front/api/management.ts';
import { ofStream } from '#front/api/streams/schema.ts';
import { after, limit } from '#front/http/query.ts';
import { rule } from '#front/http/schema-rule.ts';
import { domainOf } from '#platform/values/address.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';

const longestCursor = 1024;

/** The key of the page's last address, in base64url. Callers need not know what it contains. */
const cursor = z
  .string()
  .check(rule((text) => keyIn(text) !== null, 'the `next` of a response'))
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
  search: oneLine(320).optional().meta({ description: 'A part of the address, such as `@example.org`.' }),
  limit: limit(100, 1000),
  after: after(cursor),
  stream: ofStream,
});

export const listQuery = z.object({ stream: ofStream });

const address = z
  .string()
  .overwrite(trimBlanks)
  .meta({ format: 'idn-email', examples: ['ann@example.org'] });

export const newSuppression = z.object({
  address: address.check(rule((text) => domainOf(text) !== null, 'an email address', withoutHidden)),
  reason: oneLine(200)
    .default(defaultReason)
    .meta({ description: 'The reason, for people who read the list.' }),
  stream: ofStream,
});

const suppression = z
  .object({
    address,
    reason: z.string().meta({
      description: 'The reason that was given, `imported`, or the event that led to the suppression.',
    }),
    createdAt: moment,
    stream: z
      .string()
      .optional()
      .meta({ description: 'The stream whose mail it stops. Absent: it stops all mail.' }),
  })
  .meta({ description: 'An address that no email is sent to.' });

export const suppressionSchemas = {
  Suppression: suppression,
  SuppressionAnswer: success({ suppression }),
  SuppressionAddedAnswer: success({
    added: z
      .boolean()
      .meta({ description: 'False if the address was on the list before; its entry does not change.' }),
    suppression,
  }),
  SuppressionsAnswer: success({
    suppressions: z.array(suppression).meta({ description: 'In alphabetical order of the addresses.' }),
    next: z
      .string()
      .nullable()
      .meta({
        description:
          'The cursor of the next page: pass it as `after`. Null on the last page. With `search`, a page can be shorter than ' +
          '`limit`, or empty, although more pages follow.',
      }),
  }),
  ImportAnswer: success({
    added: z.int().meta({ description: 'How many addresses this import added.' }),
    before: z
      .int()
      .meta({ description: 'How many addresses were on the list before; their entries do not change.' }),
    rejected: z.int().meta({ description: 'How many lines have no email address and were left out.' }),
    rejectedLines: z
      .array(
        z.object({
          line: z.int().meta({ description: 'The number of the line, from 1.' }),
          text: z.string().meta({ description: 'The text that is not an address, shortened.' }),
        }),
      )
      .meta({ description: 'The first 100 of them.' }),
  }),
};
