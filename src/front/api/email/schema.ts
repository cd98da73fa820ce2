/**
 * The schema of the response of GET /api/public/email/:id (docs/design.md section 3), for the OpenAPI document and for the
 * tests, which check real responses against it. mail/record/telemetry.ts creates the response; it is not checked at run time.
 */
import { z } from 'zod';
import { capital } from '#platform/base/capital.ts';
import { deliveryStates, dialectNames, type EventType, recipientKinds } from '#platform/values/glossary.ts';
import { mixedStates } from '#platform/values/states.ts';

const time = z.iso.datetime({ precision: 3 });
const count = z.int().nonnegative();
const address = z.string().meta({ format: 'idn-email', examples: ['ann@example.org'] });

/** The states of a delivery, and those of an email whose deliveries differ. */
export const emailStates = [...deliveryStates, ...mixedStates] as const;

const reply = z
  .object({
    code: z.int().meta({ description: 'The three-digit reply code.', examples: [250] }),
    enhanced: z
      .string()
      .nullable()
      .meta({ description: 'The enhanced status code of RFC 3463.', examples: ['2.0.0'] }),
    text: z.string(),
  })
  .meta({ description: 'An SMTP reply, as the remote host sent it.' });

const mx = z
  .object({ host: z.string(), address: z.string(), port: z.int() })
  .meta({ description: 'The mail server: its name, and the address and port that were connected to.' });

const tls = z
  .object({
    protocol: z.string().meta({ examples: ['TLSv1.3'] }),
    cipher: z.string().meta({ examples: ['TLS_AES_256_GCM_SHA384'] }),
    group: z
      .string()
      .nullable()
      .optional()
      .meta({
        description:
          'The group of the key exchange; null if it had none. Missing for mail of versions up to 0.7.',
        examples: ['X25519MLKEM768'],
      }),
    verified: z.boolean().meta({ description: "Whether the server's certificate was valid for its name." }),
    policy: z.enum(['opportunistic', 'encrypted', 'verified', 'mta-sts', 'dane']).meta({
      description:
        'The protection that was required: opportunistic, none; encrypted, TLS with any certificate; verified, TLS with a ' +
        "valid certificate; mta-sts or dane, as the recipient's domain publishes (RFC 8461, RFC 7672).",
    }),
  })
  .meta({ description: 'How the connection was protected; null if it was not encrypted or there was none.' });

const category = z.string().meta({
  description:
    'The kind of failure: `unknown_user`, `mailbox_disabled`, `mailbox_full`, `greylisting`, `rate_limit`, `spam` ' +
    '(the content was classified as spam), `blocked` (our address or name is on a blocklist), `policy`, `auth` (SPF, DKIM, ' +
    'DMARC, reverse DNS), `content`, `size`, `dns`, `resolver` (our DNS resolver did not answer), `network`, `tls`, ' +
    '`protocol`, `loop`, `unavailable`, `withheld`, `interrupted`, `internal`, `other`. Later releases can add categories.',
});
const fault = z
  .enum(['recipient', 'sender', 'infrastructure', 'content'])
  .meta({ description: 'The side that caused the failure and has to correct it.' });
const diagnostic = z
  .string()
  .meta({ description: 'The reply of the remote server, or the error in a sentence.' });
const why = { category, fault, diagnostic };

const bounce = z
  .object({
    type: z.enum(['hard', 'soft']).meta({
      description: 'hard: this address will never work. soft: this email failed, but another can succeed.',
    }),
    ...why,
  })
  .meta({ description: 'Why the email bounced; null if it did not.' });

const seen = z.object({ count, firstAt: time.nullable(), lastAt: time.nullable() });

const recipient = z.object({
  address,
  kind: z.enum(recipientKinds).meta({ description: 'The list of the send that the recipient is in.' }),
  status: z.enum(deliveryStates).meta({ description: 'The state of this delivery.' }),
  attempts: count.meta({ description: 'The number of attempts made.' }),
  nextAttemptAt: time.nullable().meta({
    description:
      'When the next attempt is due. A time in the past means that the delivery waits for its turn. Null during an attempt, ' +
      'and if there is no further attempt.',
  }),
  deliveredAt: time.nullable().meta({ description: "When the recipient's mail server accepted the email." }),
  lastResponse: reply.nullable(),
  mx: mx.nullable(),
  tls: tls.nullable(),
  opens: seen.meta({ description: 'Opens of the HTML body by people, if opens are tracked.' }),
  clicks: seen.meta({ description: 'Clicks on its links by people, if clicks are tracked.' }),
  bounce: bounce.nullable(),
});

const attempt = {
  attempt: count.meta({
    description:
      'The number of the attempt, from 1. In the events `email.expired` and `email.bounced` with the category `withheld`, for ' +
      'which nothing was tried: how many attempts there were before, 0 if none.',
  }),
  response: reply.nullable(),
  mx: mx.nullable(),
  tls: tls.nullable(),
};

const reportedBy = z
  .string()
  .nullable()
  .meta({ description: 'The name of the server or service that reported it, in its own words.' });

const returned = z
  .object({
    reportedBy,
    format: z.string().meta({ description: 'The format of the report.', examples: ['status-report'] }),
    recipient: z.string().nullable().optional().meta({
      description:
        'The address that failed, as the report names it; null if it names none. Absent up to version 0.9.',
    }),
  })
  .optional()
  .meta({ description: 'Present if the email came back by mail after a server had accepted it.' });

const visitor = {
  kind: z.enum(['human', 'proxy', 'scanner']).meta({
    description:
      'human: a person. proxy: a person behind the proxy of their mail provider. scanner: a program that acts by itself, ' +
      'which is not counted.',
  }),
  userAgent: z.string(),
  ip: z.string(),
  first: z.literal(true).optional().meta({
    description: "Present if it is the recipient's first open, or first click, that is counted.",
  }),
};

/** Received mail is not an email of ours. */
type EmailEvent = Exclude<Extract<EventType, `email.${string}`>, 'email.received'>;

const tags = z
  .record(z.string(), z.string())
  .meta({ description: "The email's tags, as given in the send." });

const trackedLinks = z
  .int()
  .optional()
  .meta({
    description:
      'Present if the HTML has more links than can be tracked: only this many, the first ones, count clicks. The ' +
      'others are not changed.',
  });

/** The types of events of an email: what each means, and the members of its `data`. */
const eventKinds = {
  'email.scheduled': {
    description: 'The email was accepted for this recipient, to be sent later.',
    data: {
      scheduledAt: time.meta({ description: 'When it is to be sent; a later move is not an event.' }),
      trackedLinks,
    },
  },
  'email.queued': {
    description: 'The email was accepted for this recipient, or its `scheduledAt` has come.',
    data: { trackedLinks },
  },
  'email.suppressed': {
    description: 'The recipient is suppressed; nothing is sent.',
    data: {
      reason: z.string().optional().meta({
        description: 'Why the address is suppressed, as the list says; absent in events before version 1.1.',
      }),
    },
  },
  'email.delivered': { description: "The recipient's mail server accepted the email.", data: attempt },
  'email.deferred': {
    description: 'An attempt failed; another one follows.',
    data: {
      ...attempt,
      ...why,
      origin: z
        .enum(['remote', 'local'])
        .meta({ description: 'The side that deferred the email: the remote server or this one.' }),
      possibleDuplicate: z.boolean().meta({
        description:
          'The connection was lost between the message and the reply, so the email may already have arrived.',
      }),
      nextAttemptAt: time,
    },
  },
  'email.bounced': {
    description:
      "The email was rejected permanently, or the recipient's mail server accepted it and later sent it back by mail.",
    data: { ...attempt, bounce, returned },
  },
  'email.forward_failed': {
    description:
      "The recipient's mail server delivered the email and could not pass it on to another address: a member of a list, the " +
      'target of a forward. The recipient itself has not bounced.',
    data: { ...attempt, bounce, returned },
  },
  'email.expired': {
    description:
      'The email could not be delivered in time: within `expiresAfter`, or within the maximum age.',
    data: {
      ...attempt,
      ...why,
      reason: z.enum(['deadline', 'maximum_age']).optional().meta({
        description: "deadline: the time that `expiresAfter` set has passed. maximum_age: the server's.",
      }),
    },
  },
  'email.held': {
    description: 'The operator has put the email on hold.',
    data: { reason: z.string().meta({ description: "The operator's reason." }) },
  },
  'email.canceled': {
    description: 'The email was canceled: nothing more is sent.',
    data: {
      reason: z.string().meta({ description: "The operator's reason, or how the sender canceled it." }),
      bySender: z.literal(true).optional().meta({
        description: 'Present if the sender canceled it, through the API or in the dashboard.',
      }),
    },
  },
  'email.repeated': {
    description:
      'A later send was ignored because it repeats this one: it has the same idempotency key, or came within the duplicate window.',
    data: {},
  },
  'email.complained': {
    description: 'The recipient reported the email as spam and is now suppressed.',
    data: {
      feedbackType: z.string().meta({
        description:
          'The type of the complaint (RFC 5965): `abuse`, `fraud`, `virus`, `other`. Later releases can add types.',
      }),
      reportedBy,
    },
  },
  'email.unsubscribed': {
    description: 'The recipient unsubscribed from the stream of the email, and gets no more of it.',
    data: {
      stream: z.string().meta({ description: 'The stream.' }),
      via: z.enum(['one-click', 'page', 'mail']).meta({
        description:
          'one-click: by the button of the mail reader (RFC 8058). page: by the page of the link. mail: by mail to the address in List-Unsubscribe.',
      }),
    },
  },
  'email.opened': { description: 'The HTML body was opened.', data: visitor },
  'email.clicked': {
    description: 'A link in the HTML body was followed.',
    data: { ...visitor, url: z.string().meta({ description: 'The target of the link.' }) },
  },
} satisfies Record<EmailEvent, { description: string; data: z.ZodRawShape }>;

/** One schema for each type of event, by its name in the document: `email.queued` has the schema QueuedEvent. */
const eventSchemas = Object.fromEntries(
  Object.entries(eventKinds).map(([type, { description, data }]) => [
    nameOf(type),
    eventSchema(type, description, data),
  ]),
);

function nameOf(type: string): string {
  const word = type.slice('email.'.length);
  return `${capital(word)}Event`;
}

function eventSchema(type: string, description: string, data: z.ZodRawShape) {
  return z
    .object({
      id: z.uuid(),
      type: z.literal(type),
      timestamp: time,
      recipient: address,
      data: z.object({ tags, ...data }),
    })
    .meta({ description });
}

const variants = Object.values(eventSchemas) as [ReturnType<typeof eventSchema>];

const emailEvent = z
  .discriminatedUnion('type', variants)
  .meta({ description: 'A fact about the email for one recipient. Events are only added, never changed.' });

const emailAnswer = z
  .object({
    success: z.literal(true),
    emailId: z.uuid().meta({ description: "The email's identifier in this service." }),
    id: z.string().meta({ description: 'The Message-ID, without angle brackets.' }),
    status: z.enum(emailStates).meta({
      description:
        'The state of all recipients if it is the same. If their states differ: `processing` while any is not final, then ' +
        '`partially_delivered` if any was delivered, else `failed`.',
    }),
    from: z.string().meta({ description: 'As given in the send.' }),
    to: z.array(address).meta({ description: 'The recipients in `to`, without repetitions.' }),
    cc: z.array(address).meta({ description: 'The recipients in `cc` that are not in `to`.' }),
    bcc: z.array(address).meta({ description: 'The recipients in `bcc` that are in neither of the others.' }),
    replyTo: z.string().nullable().meta({ description: 'As given in the send.' }),
    subject: z.string().meta({ description: 'As given in the send.' }),
    tags,
    tracking: z
      .object({
        openTracking: z.boolean().meta({ description: 'Whether opens are counted.' }),
        clickTracking: z.boolean().meta({ description: 'Whether clicks are counted.' }),
      })
      .meta({ description: "The settings for this email: the domain's, overridden by the send's." }),
    test: z.literal(true).optional().meta({ description: 'Present if it was sent with a test key.' }),
    credits: count.meta({
      description:
        'The credits that the email cost: one for each accepted recipient, without those that a cancellation has refunded.',
    }),
    stream: z.string().optional().meta({ description: 'Its stream. Absent: `transactional`.' }),
    dialect: z.enum(dialectNames).optional().meta({
      description: "Present if it was sent through another service's API: the name of the service.",
    }),
    scheduledAt: time.nullable().meta({ description: 'When it is, or was, to be sent; null: at once.' }),
    expiresAt: time.meta({
      description:
        "When it expires: as `expiresAfter` has set, else at the server's maximum age, which a hold extends.",
    }),
    createdAt: time.meta({ description: 'When the send was accepted.' }),
    updatedAt: time.meta({ description: 'When the last event happened.' }),
    recipients: z
      .array(recipient)
      .meta({ description: 'The state of the email for each recipient, in the order `to`, `cc`, `bcc`.' }),
    events: z.array(emailEvent).meta({ description: 'All events, in order.' }),
  })
  .meta({ description: 'One email, with everything that is known about it.' });

export type EmailAnswer = z.input<typeof emailAnswer>;

/** The schemas by their names in the document. */
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
