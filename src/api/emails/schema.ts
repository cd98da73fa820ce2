/** What GET /api/public/emails takes and answers, as schemas: for the OpenAPI document too. */
import { z } from 'zod';
import { compareKey, domainOf, toDomain } from '../../mail/address.ts';
import { mixedStates } from '../../record/states.ts';
import { states } from '../email/schema.ts';
import { id, limit, time } from '../query.ts';
import { rule } from '../send/schema-rule.ts';

const fallback = 50;
const max = 100;

export const emailStates = [...states, ...mixedStates] as const;

/** An address, as addresses are compared, or a domain with its @. */
const address = z
  .string()
  .check(
    rule(
      (text) => domainOf(text) !== null || domainIn(text) !== null,
      'an email address, or a domain such as @example.org',
    ),
  )
  .transform((text) => (domainOf(text) === null ? `@${domainIn(text)}` : compareKey(text)));

function domainIn(text: string): string | null {
  return text.startsWith('@') ? toDomain(text.slice(1)) : null;
}

const parameters = z.object({
  status: z.enum(emailStates, { error: `must be one of ${emailStates.join(', ')}` }).optional(),
  to: address.optional(),
  from: address.optional(),
  since: time.optional(),
  until: time.optional(),
  after: id.optional(),
  limit: limit(fallback, max),
});

const tagPrefix = 'tag.';

/** `tag.order=4711` is the tag `order`. */
export const emailsQuery = parameters.catchall(z.unknown()).transform((query, context) => {
  const { status, to, from, since, until, after, limit: wanted, ...others } = query;
  const given = Object.entries(others).filter(([name]) => name.startsWith(tagPrefix));
  for (const [name, value] of given) {
    if (typeof value === 'string') continue;
    const params = { expected: 'one value' };
    context.addIssue({ code: 'custom', path: [name], message: 'must be given once', params, input: value });
  }
  const tags = given.map(([name, value]) => [name.slice(tagPrefix.length), String(value)] as const);
  return { status, to, from, since, until, after, limit: wanted, tags: Object.fromEntries(tags) };
});

const moment = z.iso.datetime({ precision: 3 });
const shownAddress = z.string().meta({ format: 'idn-email', examples: ['ann@example.org'] });

const found = z
  .object({
    emailId: z
      .uuid()
      .meta({ description: "The email's identifier: `GET /api/public/email/{id}` tells all of it." }),
    id: z.string().meta({ description: 'The Message-ID, without its angle brackets.' }),
    status: z.enum(emailStates).meta({ description: "The recipients' common state, or that they differ." }),
    from: z.string().meta({ description: 'As it was given.' }),
    to: z.array(shownAddress),
    subject: z.string(),
    tags: z.record(z.string(), z.string()),
    createdAt: moment,
    updatedAt: moment,
    recipients: z.array(z.object({ address: shownAddress, status: z.enum(states) })),
  })
  .meta({ description: 'An email, in short.' });

const emailsAnswer = z.object({
  success: z.literal(true),
  emails: z.array(found).meta({ description: 'The newest first.' }),
  next: z
    .uuid()
    .nullable()
    .meta({
      description:
        'Where to go on: give it as `after`. Null: that was all. `emails` may be shorter than `limit`, or empty, and ' +
        'there be more all the same, for one request goes through so many emails and no more.',
    }),
});

export type EmailsAnswer = z.input<typeof emailsAnswer>;

export const emailsSchemas = { Emails: emailsAnswer, FoundEmail: found };
