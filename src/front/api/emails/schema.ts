/** The schemas of GET /api/public/emails. */
import { z } from 'zod';
import { emailStates } from '#front/api/email/schema.ts';
import { after, id, limit, time } from '#front/http/query.ts';
import { rule } from '#front/http/schema-rule.ts';
import { compareKey, domainOf, toDomain } from '#platform/values/address.ts';
import { deliveryStates, recipientKinds } from '#platform/values/glossary.ts';

/** An address in the form in which addresses are compared, or a domain with its @. */
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
  status: z
    .enum(emailStates, { error: `must be one of ${emailStates.join(', ')}` })
    .optional()
    .meta({ description: 'The status of the email, or of one of its recipients.' }),
  to: address.optional().meta({
    description: 'A recipient (also in `cc` or `bcc`), or a domain such as `@example.org`.',
    example: 'ann@example.org',
  }),
  from: address.optional().meta({ description: 'The sender, or a domain such as `@example.com`.' }),
  since: time.optional().meta({
    description: 'Emails accepted at this time or later: ISO 8601 with a time zone, or a date (UTC).',
  }),
  until: time.optional().meta({ description: 'Emails accepted before this time.' }),
  limit: limit(50, 100),
  after: after(id),
});

const tagPrefix = 'tag.';

/** `tag.order=4711` finds emails whose tag `order` is `4711`. */
export const emailsQuery = parameters.catchall(z.unknown()).transform((query, context) => {
  const { status, to, from, since, until, after: cursor, limit: max, ...others } = query;
  const tagParameters = Object.entries(others).filter(([name]) => name.startsWith(tagPrefix));
  for (const [name, value] of tagParameters) {
    if (typeof value === 'string') continue;
    const params = { expected: 'one value' };
    context.addIssue({ code: 'custom', path: [name], message: 'must be given once', params, input: value });
  }
  const tags = tagParameters.map(([name, value]) => [name.slice(tagPrefix.length), String(value)] as const);
  return { status, to, from, since, until, after: cursor, limit: max, tags: Object.fromEntries(tags) };
});

const moment = z.iso.datetime({ precision: 3 });
const shownAddress = z.string().meta({ format: 'idn-email', examples: ['ann@example.org'] });

const found = z
  .object({
    emailId: z
      .uuid()
      .meta({ description: "The email's identifier. `GET /api/public/email/{id}` shows the whole email." }),
    id: z.string().meta({ description: 'The Message-ID, without angle brackets.' }),
    status: z
      .enum(emailStates)
      .meta({ description: "The recipients' common state, or a state that says that they differ." }),
    from: z.string().meta({ description: 'As given in the send.' }),
    to: z.array(shownAddress),
    cc: z.array(shownAddress),
    bcc: z.array(shownAddress),
    subject: z.string(),
    tags: z.record(z.string(), z.string()),
    test: z.literal(true).optional().meta({ description: 'Present if it was sent with a test key.' }),
    createdAt: moment,
    updatedAt: moment,
    recipients: z.array(
      z.object({ address: shownAddress, kind: z.enum(recipientKinds), status: z.enum(deliveryStates) }),
    ),
  })
  .meta({ description: 'A summary of an email.' });

const emailsAnswer = z.object({
  success: z.literal(true),
  emails: z.array(found).meta({ description: 'Newest first.' }),
  next: z
    .uuid()
    .nullable()
    .meta({
      description:
        'The cursor of the next page: pass it as `after`. Null on the last page. One request examines a limited number of ' +
        'emails, so a page can be shorter than `limit`, or empty, although more pages follow.',
    }),
});

export const emailsSchemas = { Emails: emailsAnswer, FoundEmail: found };
