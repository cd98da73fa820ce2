/** The schemas of GET /api/public/received. */
import { z } from 'zod';
import { moment, nextId, success } from '#front/api/management.ts';
import { after, id, limit } from '#front/http/query.ts';

export const receivedQuery = z.object({ limit: limit(50, 100), after: after(id) });

const result = z.enum(['none', 'pass', 'fail', 'softfail', 'neutral', 'policy', 'temperror', 'permerror']);
const domain = z.string().nullable();

const verdicts = z
  .object({
    spf: z.object({ result, domain }),
    dkim: z.array(z.object({ result, domain, selector: z.string().nullable() })),
    dmarc: z.object({ result, domain, policy: z.enum(['none', 'quarantine', 'reject']).nullable() }),
    arc: z.object({ result }),
  })
  .meta({ description: 'Who the sender is proven to be, in the words of RFC 8601.' });

const spam = z
  .object({ isSpam: z.boolean(), score: z.number(), threshold: z.number(), rules: z.array(z.string()) })
  .nullable()
  .meta({ description: 'The verdict of the spam filter; null without one.' });

const summary = {
  receivedId: z.uuid(),
  receivedAt: moment,
  test: z.literal(true).optional().meta({ description: 'Present if it is test mail.' }),
  domain: z.string().meta({ description: 'The domain of yours that received it.' }),
  recipients: z.array(z.string()).meta({ description: 'The addresses at which it arrived (RCPT TO).' }),
  sender: z.string().meta({ description: 'The address for bounces (MAIL FROM); empty if there is none.' }),
  from: z.string().meta({ description: 'The header From, decoded.' }),
  subject: z.string(),
  messageId: z.string().nullable().meta({ description: 'Without its angle brackets.' }),
  inReplyTo: z
    .object({ emailId: z.uuid() })
    .nullable()
    .meta({ description: 'The email of yours that it answers; null if it answers none.' }),
  isReadable: z
    .boolean()
    .meta({ description: 'False if it could not be parsed: then only its raw form is known.' }),
  isAutomatic: z.boolean().meta({
    description:
      'Whether a program has sent it. Answer such mail by no program: the two would go on for ever.',
  }),
  preview: z.string().meta({ description: 'The beginning of the text.' }),
  attachmentCount: z.int(),
  size: z.int().meta({ description: 'In bytes.' }),
  client: z
    .object({
      address: z.string(),
      helo: z.string(),
      tls: z.object({ protocol: z.string(), cipher: z.string() }).nullable(),
    })
    .meta({ description: 'The mail server that delivered it.' }),
  verdicts,
  spam,
  routeId: z.string().meta({ description: 'The route that took it; it may have been removed since.' }),
};

const found = z.object(summary).meta({ description: 'A received mail in a list.' });

const attachment = z.object({
  position: z.int(),
  filename: z.string().nullable(),
  contentType: z.string(),
  size: z.int(),
  contentId: z.string().nullable(),
  isInline: z.boolean(),
  url: z.url(),
});

const whole = z
  .object({
    ...summary,
    attachments: z.array(attachment).nullable(),
    headers: z.array(z.object({ name: z.string(), value: z.string() })).nullable(),
    reply: z
      .string()
      .nullable()
      .meta({ description: 'The text without the quoted mail and the signature below it.' }),
    text: z.string().nullable(),
    html: z.string().nullable().meta({ description: 'Also null if the mail has none.' }),
    omitted: z
      .array(z.enum(['attachments', 'headers', 'reply', 'text', 'html']))
      .meta({ description: 'The members that are null because they are too long for one answer.' }),
    links: z
      .object({ raw: z.url(), text: z.url(), html: z.url(), expiresAt: moment })
      .meta({ description: 'URLs that need no key.' }),
  })
  .meta({ description: 'A received mail. Webhooks of `email.received` post the same members as `data`.' });

export const receivedSchemas = {
  ReceivedMails: success({
    mails: z.array(found).meta({ description: 'Newest first.' }),
    next: nextId,
  }),
  ReceivedMail: success({ mail: whole }),
  FoundReceivedMail: found,
  WholeReceivedMail: whole,
};
