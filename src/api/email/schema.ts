/**
 * The answer of GET /api/public/email/:id as a schema (docs/design.md section 3): for the OpenAPI document, and for the
 * tests, which hold real answers against it. record/telemetry.ts makes the answer; nothing is checked on the way out.
 */
import { z } from 'zod';
import type { EventType } from '../../glossary.ts';

const time = z.iso.datetime({ precision: 3 });
const count = z.int().nonnegative();
const address = z.string().meta({ format: 'idn-email', examples: ['ann@example.org'] });

export const states = [
  'queued',
  'sending',
  'deferred',
  'held',
  'delivered',
  'bounced',
  'complained',
  'expired',
  'canceled',
  'suppressed',
  'insufficient_credit',
] as const;

const reply = z
  .object({
    code: z.int().meta({ description: 'The three digits.', examples: [250] }),
    enhanced: z
      .string()
      .nullable()
      .meta({ description: 'The enhanced status code of RFC 3463.', examples: ['2.0.0'] }),
    text: z.string(),
  })
  .meta({ description: 'An SMTP reply, as the remote host gave it.' });

const mx = z
  .object({ host: z.string(), address: z.string(), port: z.int() })
  .meta({ description: 'The mail server that was talked to: its name, the address and port connected to.' });

const tls = z
  .object({
    protocol: z.string().meta({ examples: ['TLSv1.3'] }),
    cipher: z.string().meta({ examples: ['TLS_AES_256_GCM_SHA384'] }),
    verified: z.boolean().meta({ description: "Whether the server's certificate was good for its name." }),
    policy: z.enum(['opportunistic', 'encrypted', 'verified', 'mta-sts', 'dane']).meta({
      description:
        'What was demanded: opportunistic, nothing; encrypted, TLS with any certificate; verified, a good one; ' +
        "mta-sts or dane, what the recipient's domain publishes (RFC 8461, RFC 7672).",
    }),
  })
  .meta({ description: 'How the connection was protected. null in clear, and where there was none.' });

const category = z.string().meta({
  description:
    'What kind of trouble: `unknown_user`, `mailbox_disabled`, `mailbox_full`, `greylisting`, `rate_limit`, `spam` ' +
    '(the content was judged to be), `blocked` (our address or name is on a list), `policy`, `auth` (SPF, DKIM, ' +
    'DMARC, reverse DNS), `content`, `size`, `dns`, `network`, `tls`, `protocol`, `loop`, `unavailable`, `withheld`, ' +
    '`interrupted`, `internal`, `other`. More may come.',
});
const fault = z
  .enum(['recipient', 'sender', 'infrastructure', 'content'])
  .meta({ description: 'Whose fault it is: whom to talk to.' });
const diagnostic = z
  .string()
  .meta({ description: 'The evidence: the remote reply, or what went wrong, in a sentence.' });
const why = { category, fault, diagnostic };

const bounce = z
  .object({
    type: z.enum(['hard', 'soft']).meta({
      description: 'hard: this address will never work. soft: this email failed, another may pass.',
    }),
    ...why,
  })
  .meta({ description: 'Why it will not arrive. null unless it bounced.' });

const seen = z.object({ count, firstAt: time.nullable(), lastAt: time.nullable() });

const recipient = z.object({
  address,
  status: z.enum(states).meta({ description: 'The state of this delivery.' }),
  attempts: count.meta({ description: 'Attempts made.' }),
  nextAttemptAt: time.nullable().meta({
    description:
      'When it is tried next, or since when it is due and waits for its turn; null while it is tried, and where it is not.',
  }),
  deliveredAt: time.nullable().meta({ description: "When the recipient's mail server took it." }),
  lastResponse: reply.nullable(),
  mx: mx.nullable(),
  tls: tls.nullable(),
  opens: seen.meta({ description: 'Opens of the HTML body by people, where they are tracked.' }),
  clicks: seen.meta({ description: 'Clicks on its links by people, where they are tracked.' }),
  bounce: bounce.nullable(),
});

const attempt = {
  attempt: count.meta({ description: 'Which attempt it was, from 1.' }),
  response: reply.nullable(),
  mx: mx.nullable(),
  tls: tls.nullable(),
};

const reportedBy = z.string().nullable().meta({ description: 'Who reported it, as they call themselves.' });

const returned = z
  .object({
    reportedBy,
    format: z.string().meta({ description: 'How it was read.', examples: ['status-report'] }),
  })
  .optional()
  .meta({ description: 'Of an email that came back by mail, after it had been taken.' });

const visitor = {
  kind: z.enum(['human', 'proxy', 'scanner']).meta({
    description:
      'human: a person. proxy: a person, seen through their provider. scanner: a program of its own accord, which is ' +
      'not counted.',
  }),
  userAgent: z.string(),
  ip: z.string(),
};

type EmailEvent = Extract<EventType, `email.${string}`>;

const tags = z.record(z.string(), z.string()).meta({ description: "The email's tags, as they were given." });

/** What happened, and what `data` tells of it. */
const happenings = {
  'email.queued': {
    is: 'It was accepted for this recipient.',
    data: {
      trackedLinks: z
        .int()
        .optional()
        .meta({
          description:
            'There where the HTML has more links than are tracked: so many, the first ones, count clicks. The others are ' +
            'left as they are.',
        }),
    },
  },
  'email.suppressed': { is: 'The recipient is on the suppression list; nothing is sent.', data: {} },
  'email.delivered': { is: "The recipient's mail server took it.", data: attempt },
  'email.deferred': {
    is: 'An attempt failed; another follows.',
    data: {
      ...attempt,
      ...why,
      origin: z
        .enum(['remote', 'local'])
        .meta({ description: 'Who put it off: the other side, or this server.' }),
      possibleDuplicate: z.boolean().meta({
        description:
          'The connection was lost after the message and before its reply: it may have arrived already.',
      }),
      nextAttemptAt: time,
    },
  },
  'email.bounced': {
    is: "It was refused for good; or the recipient's mail server took it, and sent it back by mail later.",
    data: { ...attempt, bounce, returned },
  },
  'email.expired': {
    is: 'It could not be delivered within its maximum age.',
    data: { ...attempt, ...why },
  },
  'email.held': {
    is: 'The operator holds it back.',
    data: { reason: z.string().meta({ description: "The operator's reason." }) },
  },
  'email.canceled': {
    is: 'The operator canceled it: nothing more is sent.',
    data: { reason: z.string().meta({ description: "The operator's reason." }) },
  },
  'email.complained': {
    is: 'The recipient complained of it, and is written to no more.',
    data: {
      feedbackType: z.string().meta({
        description:
          'What the mailbox provider calls it (RFC 5965): `abuse`, `fraud`, `virus`, `other`. More may come.',
      }),
      reportedBy,
    },
  },
  'email.opened': { is: 'The HTML body was opened.', data: visitor },
  'email.clicked': {
    is: 'A link of the HTML body was followed.',
    data: { ...visitor, url: z.string().meta({ description: 'Where the link led.' }) },
  },
} satisfies Record<EmailEvent, { is: string; data: z.ZodRawShape }>;

/** One schema for each type of event, by its name in the document: `email.queued` is QueuedEvent. */
const eventSchemas = Object.fromEntries(
  Object.entries(happenings).map(([type, { is, data }]) => [nameOf(type), eventSchema(type, is, data)]),
);

function nameOf(type: string): string {
  const word = type.slice('email.'.length);
  return `${word[0]!.toUpperCase()}${word.slice(1)}Event`;
}

function eventSchema(type: string, is: string, data: z.ZodRawShape) {
  return z
    .object({
      id: z.uuid(),
      type: z.literal(type),
      timestamp: time,
      recipient: address,
      data: z.object({ tags, ...data }),
    })
    .meta({ description: is });
}

const variants = Object.values(eventSchemas) as [ReturnType<typeof eventSchema>];

const emailEvent = z
  .discriminatedUnion('type', variants)
  .meta({ description: 'A fact about the email for one recipient; never changed, only added.' });

const emailAnswer = z
  .object({
    success: z.literal(true),
    emailId: z.uuid().meta({ description: "The email's identifier in this service." }),
    id: z.string().meta({ description: 'The Message-ID, without its angle brackets.' }),
    status: z.enum([...states, 'processing', 'partially_delivered', 'failed']).meta({
      description:
        "The recipients' common state. Where they differ: `processing` while any is not final, then " +
        '`partially_delivered` if any was delivered, else `failed`.',
    }),
    from: z.string().meta({ description: 'As it was given.' }),
    to: z.array(address).meta({ description: 'Every recipient of the send, each once.' }),
    replyTo: z.string().nullable().meta({ description: 'As it was given.' }),
    subject: z.string().meta({ description: 'As it was given.' }),
    tags,
    tracking: z
      .object({
        openTracking: z.boolean().meta({ description: 'Whether opens are counted.' }),
        clickTracking: z.boolean().meta({ description: 'Whether clicks are counted.' }),
      })
      .meta({ description: "What holds for this email: the domain's settings and the send's." }),
    credits: count.meta({ description: 'Credits that it cost: one for each accepted recipient.' }),
    createdAt: time.meta({ description: 'When the send was accepted.' }),
    updatedAt: time.meta({ description: 'When something last happened.' }),
    recipients: z
      .array(recipient)
      .meta({ description: 'What became of the email, for each recipient in the order of `to`.' }),
    events: z.array(emailEvent).meta({ description: 'What happened, in order.' }),
  })
  .meta({ description: 'One email, with everything that is known of it.' });

export type EmailAnswer = z.input<typeof emailAnswer>;

/** By their names in the document. */
export const emailSchemas = {
  Email: emailAnswer,
  Recipient: recipient,
  Reply: reply,
  MailServer: mx,
  Tls: tls,
  Bounce: bounce,
  EmailEvent: emailEvent,
  ...eventSchemas,
};
