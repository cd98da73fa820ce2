/**
 * The send request of docs/api.md section 2.1: one zod schema with every field and limit. `from` is only a string here;
 * accept.ts checks it later, because an invalid sender is a BAD_REQUEST and not a VALIDATION_ERROR.
 *
 * Strings that can reach a header or an SMTP command contain no CR, LF or NUL. Unknown fields are dropped. `meta` is for
 * the OpenAPI document, which also prints what each `rule` expects.
 */
import { z } from 'zod';
import { streamName } from '#front/api/streams/schema.ts';
import { id } from '#front/http/query.ts';
import { characters, rule } from '#front/http/schema-rule.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import type { Attachment } from '#mail/compose/attachment.ts';
import { headerIssue, repeatedHeaders } from '#mail/compose/custom-headers.ts';
import { domainOf, parseMailbox } from '#platform/values/address.ts';
import { type RecipientKind, recipientKinds } from '#platform/values/glossary.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';
import { readTime, timeForm } from '#platform/values/read-time.ts';
import { recipientsOf, withoutName } from '#platform/values/recipients.ts';
import { minExpiresAfter } from '#platform/values/send-times.ts';
import { tlsRequiredField } from '#platform/values/tls-required.ts';
import { limitSize } from './at-most.ts';
import { attachments, type GivenAttachment } from './attachments.ts';

const maxRecipients = 10;
const maxPairs = 10;
/** The maximum size of html and of text, each, in bytes of UTF-8. */
const maxBodyBytes = 2 * 1024 * 1024;

const oneLine = rule<string>((text) => !/[\r\n\0]/.test(text), 'free of CR, LF and NUL');
const unicode = rule<string>((text) => text.isWellFormed(), 'well-formed Unicode');
/** `forSeveral`: the advice if a text has several addresses. */
const addressOr = (forSeveral: (list: string[]) => string) =>
  z
    .string()
    .overwrite(trimBlanks)
    .check(
      rule(
        (text) => domainOf(text) !== null,
        'a plain email address',
        (text) => {
          const hidden = withoutHidden(text);
          if (hidden !== '') return hidden;
          const mailbox = parseMailbox(text);
          if (mailbox) return `, without a display name: ${mailbox.address}`;
          const list = addressesIn(text);
          return list.length > 1 ? `; ${forSeveral(list)}` : ', such as ann@example.org';
        },
      ),
    )
    .meta({ format: 'idn-email' });

const longestList = 400;

/** The addresses in a text with commas or semicolons; none if it has something else. */
function addressesIn(text: string): string[] {
  if (text.length > longestList) return [];
  const found = text.split(/[,;]/).map((part) => parseMailbox(part.trim())?.address);
  return found.every((one) => one !== undefined) ? found : [];
}

const address = addressOr((list) => `give several addresses as a list: ${JSON.stringify(list)}`);
export const body = z.string().check(rule(fitsBody, 'at most 2 MiB of UTF-8')).optional();

/** A UTF-16 code unit is at most three bytes in UTF-8, so most bodies need no count, which takes 20 µs for 40 KB. */
function fitsBody(text: string): boolean {
  return 3 * text.length <= maxBodyBytes || Buffer.byteLength(text) <= maxBodyBytes;
}

/** A single address becomes a list of one. */
const addressList = (minimum: number) =>
  z.preprocess(
    (value) => (typeof value === 'string' ? [value] : value),
    limitSize(maxRecipients, z.array(address).min(minimum).max(maxRecipients)),
  );

const to = addressList(1).meta({
  description:
    'One recipient address, or a list of up to ten. An address that is given twice is counted, charged and delivered once.',
});
const together = '`to`, `cc` and `bcc` have at most ten addresses together.';
const cc = addressList(0).meta({
  description: `One address, or a list, of recipients that are named in the header Cc. ${together}`,
});
const bcc = addressList(0).meta({
  description: `One address, or a list, of recipients that no other recipient learns of: they are in no header. ${together}`,
});

/** The lists that take one address or several. */
export const addressLists: unknown[] = [to, cc, bcc];

/** The list in which the recipients become too many. Entries are counted before repeats are dropped; a faulty list has none. */
function overfullList(fields: Partial<Record<RecipientKind, unknown>>): RecipientKind | null {
  let count = 0;
  for (const kind of recipientKinds) {
    const list = fields[kind];
    count += Array.isArray(list) ? list.length : 0;
    if (count > maxRecipients) return kind;
  }
  return null;
}

function tooManyFrom(kind: RecipientKind) {
  const expected = `at most ${maxRecipients} recipients in to, cc and bcc together`;
  return {
    path: [kind],
    error: `must be ${expected}`,
    params: { expected },
    when: ({ value }: { value: unknown }) => isObject(value),
  };
}

/** A rule with this condition is reported together with the issues of other fields, not only after those are corrected. */
function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const atMostPairs = <Schema extends z.ZodType>(schema: Schema, max = maxPairs) =>
  limitSize(max, schema, `at most ${max} pairs`);

/** Other services allow more tags than we do. */
export const tagsWithin = (max: { pairs: number; name: number; value: number }) =>
  atMostPairs(
    z
      .record(
        z
          .string()
          .check(characters(1, max.name), oneLine, unicode)
          .meta({ minLength: 1, maxLength: max.name }),
        z.string().check(characters(0, max.value), oneLine, unicode).meta({ maxLength: max.value }),
      )
      .check(rule((pairs) => Object.keys(pairs).length <= max.pairs, `at most ${max.pairs} pairs`)),
    max.pairs,
  );

export const tags = tagsWithin({ pairs: maxPairs, name: 64, value: 256 }).meta({
  maxProperties: maxPairs,
  description:
    'Your own names and values for the email. Names have 1 to 64 characters, values at most 256. They are returned with ' +
    'the email, in events and in webhooks, and are in the delivery log.',
  examples: [{ order: '4711' }],
});

/** Other services allow more headers than we do. */
export const headersWithin = (max: number) =>
  atMostPairs(
    z
      // Values are checked below, because zod would not report an invalid name if a value has the wrong type.
      .record(z.string(), z.unknown())
      .check(rule((pairs) => Object.keys(pairs).length <= max, `at most ${max} pairs`))
      .superRefine((pairs, context) => {
        for (const [name, other] of repeatedHeaders(Object.keys(pairs))) {
          const expected = 'a header that is given once';
          const message = `${name} and ${other} are the same header: give it once`;
          context.addIssue({ code: 'custom', path: [name], message, params: { expected } });
        }
        for (const [name, value] of Object.entries(pairs)) {
          if (typeof value !== 'string') {
            context.addIssue({ code: 'invalid_type', expected: 'string', path: [name], input: value });
            continue;
          }
          const issue = headerIssue(name, value);
          if (!issue) continue;
          const { message, expected } = issue;
          context.addIssue({ code: 'custom', path: [name], message, params: { expected } });
        }
      })
      .transform((pairs) => pairs as Record<string, string>),
    max,
  );

const headers = headersWithin(maxPairs).meta({
  additionalProperties: { type: 'string' },
  maxProperties: maxPairs,
  description:
    'MIME headers to add. `From`, `To`, `Subject` and `DKIM-Signature` cannot be set, nor can headers that would ' +
    'break or contradict the message: `MIME-Version`, `Content-*`, `Cc`, `Bcc`, `Return-Path`, `Received`, `Resent-*`, ' +
    '`ARC-*`, `Authentication-Results`. `Date`, `Message-ID`, `Reply-To` and `Sender` replace the generated ones. ' +
    '`References`, `In-Reply-To`, `List-*` and headers with addresses must follow their grammar. `TLS-Required: No` (RFC 8689) ' +
    "sends the email even if the TLS policy of the recipient's domain cannot be met. " +
    'Names are tokens; values ' +
    'contain no CR, LF or NUL.',
  examples: [{ 'X-Campaign': 'receipts' }],
});

export const scheduledAt = z
  .string({ error: ({ input }) => (input === undefined ? undefined : `must be ${timeForm}`) })
  .check(rule((text) => readTime(text) !== null, timeForm))
  .transform((text) => readTime(text)!)
  .meta({
    format: 'date-time',
    description:
      'When to send the email: ISO 8601 with an offset (`Z` or `+02:00`), in the future, at most 30 days ahead. Until then ' +
      'its recipients are `scheduled`. It is charged now.',
    examples: ['2026-12-24T18:00:00+01:00'],
  });

export const expiresAfter = z
  .int()
  .min(minExpiresAfter)
  .meta({
    description:
      "Seconds, from 10 to the server's maximum age, from the acceptance or from `scheduledAt`. No attempt starts after " +
      'them: what has not been delivered by then is `expired`.',
    examples: [600],
  });

export const tracking = z
  .object({
    openTracking: z
      .boolean()
      .optional()
      .meta({ description: 'Whether opens of the HTML body are counted, by a pixel.' }),
    clickTracking: z.boolean().optional().meta({
      description:
        'Whether clicks on links of the HTML body are counted, by rewriting them. Links with the attribute `data-postern-no-track` are not changed; nor are those with `clicktracking="off"`, `data-pm-no-track` or `disable-tracking="true"`.',
    }),
  })
  .meta({
    description:
      "Overrides the sender domain's tracking settings; a member left out keeps the domain's setting.",
  });

export const subject = z
  .string()
  .check(characters(1, 998), oneLine, unicode)
  .meta({ minLength: 1, maxLength: 998, description: 'The subject line.', examples: ['Your receipt'] });

export const sendSchema = z
  .object({
    to,
    cc: cc.optional(),
    bcc: bcc.optional(),
    from: z
      .string()
      .overwrite(trimBlanks)
      .meta({
        description:
          'The sender, as an address or as `Name <address>`. Its domain must be registered in your organization and verified.',
        examples: ['Acme Billing <billing@example.com>'],
      }),
    subject,
    html: body.meta({ description: 'The HTML body. One of `html` and `text` is required, and not empty.' }),
    text: body.meta({
      description:
        'The plain-text body. One of `html` and `text` is required, and not empty. If it is left out, it is made from `html`, unless `POSTERN_TEXT_FROM_HTML` is off; an empty string prevents that.',
    }),
    inReplyTo: id.optional().meta({
      format: 'uuid',
      description:
        'The `receivedId` of a received mail that this email answers: sets `In-Reply-To` and `References`, unless `headers` has ' +
        'them, and `subject` may be left out: it is then `Re: ` and that of the mail.',
    }),
    replyTo: addressOr(() => 'give only one address')
      .optional()
      .meta({ description: 'The address for replies, if it is not the sender.' }),
    attachments: attachments.optional(),
    headers: headers.optional(),
    tags: tags.optional(),
    tracking: tracking.optional(),
    stream: streamName.optional().meta({
      description: 'The stream that the email is in, if it is not that of the key. `transactional`: none.',
    }),
    scheduledAt: scheduledAt.optional(),
    expiresAfter: expiresAfter.optional(),
    idempotencyKey: z
      .string()
      .check(characters(1, 255), oneLine, unicode)
      .optional()
      .meta({
        minLength: 1,
        maxLength: 255,
        description:
          'Your own key for this send: a retry with the same key sends nothing and gets the first response. Overrides the header `Idempotency-Key`.',
        examples: ['receipt-4711'],
      }),
  })
  .refine(({ html, text }) => [html, text].some((part) => part !== undefined && part !== ''), {
    path: ['html'],
    error: 'html or text is required',
    params: { expected: 'html or text, one of them not empty' },
    when: ({ value }) => isObject(value),
  })
  .refine((fields) => overfullList(fields) !== 'cc', tooManyFrom('cc'))
  .refine((fields) => overfullList(fields) !== 'bcc', tooManyFrom('bcc'))
  .meta({
    description:
      'One email to one to ten recipients. Unknown members are ignored, and named in `X-Postern-Ignored`. An optional member that is null counts as not given.',
    anyOf: [{ required: ['html'] }, { required: ['text'] }],
  });

export type SendFields = z.infer<typeof sendSchema>;

/** Converts checked fields to the request that accept.ts takes. */
export function toRequest(
  parsed: SendFields,
  fetchAll: (files: GivenAttachment[]) => Promise<Attachment[]>,
): Omit<SendRequest, 'idempotency' | 'requestId'> & { inReplyTo?: string | undefined } {
  const { idempotencyKey: _, to, cc, bcc, replyTo, ...fields } = parsed;
  return {
    ...fields,
    recipients: recipientsOf({
      to: to.map(withoutName),
      cc: cc?.map(withoutName),
      bcc: bcc?.map(withoutName),
    }),
    replyTo: replyTo === undefined ? undefined : [withoutName(replyTo)],
    attachments: attachmentsOf(parsed.attachments ?? [], fetchAll),
    headers: parsed.headers ?? {},
    tags: parsed.tags ?? {},
    tracking: parsed.tracking ?? {},
    tlsRequired: tlsRequiredIn(parsed.headers ?? {}),
  };
}

/** The headers have been checked: the value is No. */
export const tlsRequiredIn = (headers: Record<string, string>) =>
  Object.keys(headers).some(isTlsRequired) ? false : undefined;

const isTlsRequired = (name: string) => name.toLowerCase() === tlsRequiredField;

export function attachmentsOf(
  given: GivenAttachment[],
  fetchAll: (files: GivenAttachment[]) => Promise<Attachment[]>,
): SendRequest['attachments'] {
  const whole = given.flatMap(({ url: _, content, ...file }) => (content ? [{ ...file, content }] : []));
  return whole.length === given.length ? whole : () => fetchAll(given);
}
