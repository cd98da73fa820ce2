/** The members of an email's event that other services' formats write, too, under their own names. */

import { originOf, type SuppressionOrigin } from '#accounts/rows/suppressions.ts';
import type { EventRecord } from '#mail/record/rows/read-events.ts';
import type { Bounce, Peer, Reply } from '#platform/values/glossary.ts';

export interface EmailEvent {
  id: string;
  type: string;
  /** When it happened, in milliseconds since the epoch. */
  at: number;
  /** A number of its own, for formats whose ids are numbers. */
  position: number;
  emailId: string;
  /** The Message-ID, without angle brackets. */
  messageId: string;
  from: string;
  subject: string;
  recipient: string;
  /** Null: `transactional`. */
  stream: string | null;
  /** The tags without `tag`. */
  tags: Record<string, string>;
  /** The tag named `tag`: services with a single tag, or with categories, call it theirs. */
  tag: string | null;
  attempt: number;
  response: Reply | null;
  host: Peer | null;
  hasTls: boolean;
  bounce: Bounce | null;
  /** Why it did not arrive: the reply, or a sentence of ours. */
  diagnostic: string;
  category: string | null;
  userAgent: string;
  ip: string;
  url: string;
  /** The count of the recipient's opens or clicks by a person. */
  isFirst: boolean;
}

export function emailEventOf(event: EventRecord): EmailEvent {
  const { id, type, at, position, recipient, data, email } =
    event.type === 'webhook.test' ? sampleOf(event) : event;
  const bounce = (data.bounce ?? null) as Bounce | null;
  const { tag = null, ...tags } = email?.tags ?? {};
  return {
    id,
    type,
    at,
    position,
    emailId: email?.id ?? '',
    messageId: email?.messageId ?? '',
    from: email?.from ?? '',
    subject: email?.subject ?? '',
    recipient: recipient ?? textOf(data.address),
    stream: email?.stream ?? (textOf(data.stream) || null),
    tags,
    tag,
    attempt: Number(data.attempt ?? 0),
    response: (data.response ?? null) as Reply | null,
    host: (data.mx ?? null) as Peer | null,
    hasTls: Boolean(data.tls),
    bounce,
    diagnostic: textOf(bounce?.diagnostic ?? data.diagnostic ?? data.reason),
    category: bounce?.category ?? ((data.category ?? null) as string | null),
    userAgent: textOf(data.userAgent),
    ip: textOf(data.ip),
    url: textOf(data.url),
    isFirst: data.first === true,
  };
}

/** What put the address of an event `email.suppressed` on the list. Events before version 1.1 do not say it. */
export function suppressedFor({ diagnostic }: EmailEvent): SuppressionOrigin {
  return diagnostic === '' ? 'bounce' : originOf({ reason: diagnostic });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The event that `webhook.test` posts in a format without one for it: a delivery, as the services' own tests do. */
function sampleOf(event: EventRecord): EventRecord {
  const response: Reply = { code: 250, enhanced: '2.0.0', text: 'This is a test.' };
  return {
    ...event,
    type: 'email.delivered',
    recipient: 'test@example.com',
    data: { attempt: 1, response },
    email: {
      id: event.id,
      messageId: `${event.id}@example.com`,
      from: 'test@example.com',
      subject: 'This is a test',
      tags: {},
      isTest: false,
    },
  };
}

/** The reply as one line, for instance "250 2.0.0 OK". */
export function replyText({ response, diagnostic }: EmailEvent): string {
  if (response === null) return diagnostic;
  return [response.code, response.enhanced, response.text].filter((part) => part !== null).join(' ');
}
