/**
 * Postmark's webhooks: https://postmarkapp.com/developer/webhooks/webhooks-overview. They are not signed: the URL can hold a user
 * name and a password, which each post carries (Basic authentication, RFC 7617) and which are stored as the endpoint's secret.
 */

import { postmarkReceived } from '#mail/webhooks/received/postmark-received.ts';
import type { WrittenType } from '#mail/webhooks/subscribed-types.ts';
import { postmarkStreamOf } from '#platform/values/stream.ts';
import { boundedJson } from './bounded-json.ts';
import { type EmailEvent, emailEventOf, replyText } from './email-event.ts';
import type { Signing, WebhookFormat } from './webhook-format.ts';

const writers: Record<string, (email: EmailEvent) => object> = {
  'email.delivered': (email) => ({
    RecordType: 'Delivery',
    ...common(email),
    DeliveredAt: timeOf(email),
    Details: replyText(email),
  }),
  'email.bounced': postmarkBounce,
  'email.expired': postmarkBounce,
  'email.complained': postmarkBounce,
  'email.opened': (email) => ({
    RecordType: 'Open',
    ...common(email),
    ...visitor(email),
    FirstOpen: email.isFirst,
    ReadSeconds: 0,
  }),
  'email.clicked': (email) => ({
    RecordType: 'Click',
    ...common(email),
    ...visitor(email),
    ClickLocation: 'HTML',
    OriginalLink: email.url,
  }),
  'suppression.added': (email) => subscriptionChange(email, true),
  'suppression.removed': (email) => subscriptionChange(email, false),
} satisfies Record<Exclude<WrittenType<'postmark'>, 'email.received'>, (email: EmailEvent) => object>;

export const postmark: WebhookFormat = {
  hasSeveralSignatures: false,
  newSecret: () => ({ secret: '', publicKey: null }),
  contentType: 'application/json',
  write(event) {
    const email = emailEventOf(event);
    return boundedJson(writers[email.type]!(email));
  },
  headersOf: basicAuthorization,
  writeReceived: postmarkReceived,
};

/** The secret is what the URL had as user name and password. */
export function basicAuthorization(
  _id: string,
  _body: string | Buffer,
  { secrets: [credentials] }: Signing,
): Record<string, string> {
  if (!credentials) return {};
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}

function common(email: EmailEvent) {
  return {
    ServerID: 0,
    MessageStream: postmarkStreamOf(email.stream),
    MessageID: email.emailId,
    Recipient: email.recipient,
    Tag: email.tag ?? '',
    Metadata: email.tags,
  };
}

interface BounceKind {
  Type: string;
  TypeCode: number;
  Name: string;
  Description: string;
}

/** Postmark's types of bounces, as far as we tell them apart. */
export const postmarkBounces = {
  hard: {
    Type: 'HardBounce',
    TypeCode: 1,
    Name: 'Hard bounce',
    Description: 'The server was unable to deliver your message (ex: unknown user, mailbox not found).',
  },
  dns: {
    Type: 'DnsError',
    TypeCode: 256,
    Name: 'DNS error',
    Description: 'A temporary DNS error.',
  },
  soft: {
    Type: 'SoftBounce',
    TypeCode: 4096,
    Name: 'Soft bounce',
    Description:
      'Unable to temporarily deliver message (i.e. mailbox full, account disabled, exceeds quota).',
  },
  spam: {
    Type: 'SpamNotification',
    TypeCode: 512,
    Name: 'Spam notification',
    Description: 'The message was delivered, but was either blocked by the user, or classified as spam.',
  },
  blocked: {
    Type: 'Blocked',
    TypeCode: 100_006,
    Name: 'ISP block',
    Description: 'Blocked from this ISP due to content or blocklisting.',
  },
  complaint: {
    Type: 'SpamComplaint',
    TypeCode: 100_001,
    Name: 'Spam complaint',
    Description: 'The subscriber explicitly marked this message as spam.',
  },
} as const satisfies Record<string, BounceKind>;

/** `Inactive`: the address is on the suppression list then. */
export function postmarkBounce(email: EmailEvent) {
  const isComplaint = email.type === 'email.complained';
  const isHard = email.bounce?.type === 'hard';
  const isInactive = isComplaint || isHard;
  return {
    RecordType: isComplaint ? 'SpamComplaint' : 'Bounce',
    ...common(email),
    ID: email.position,
    ...(isComplaint ? postmarkBounces.complaint : kindOf(email, isHard)),
    Details: replyText(email),
    Email: email.recipient,
    From: email.from,
    BouncedAt: timeOf(email),
    DumpAvailable: false,
    Inactive: isInactive,
    CanActivate: isInactive,
    Subject: email.subject,
    Content: '',
  };
}

function kindOf({ category }: EmailEvent, isHard: boolean): BounceKind {
  if (isHard) return postmarkBounces.hard;
  if (category === 'dns') return postmarkBounces.dns;
  if (category === 'spam' || category === 'content') return postmarkBounces.spam;
  return category === 'blocked' || category === 'policy' ? postmarkBounces.blocked : postmarkBounces.soft;
}

/** Postmark guesses the program, the system and the place; we do not. */
function visitor(email: EmailEvent) {
  return {
    ReceivedAt: timeOf(email),
    UserAgent: email.userAgent,
    Platform: 'Unknown',
    Client: { Name: '', Company: '', Family: '' },
    OS: { Name: '', Company: '', Family: '' },
    Geo: { IP: email.ip },
  };
}

function subscriptionChange(email: EmailEvent, isSuppressed: boolean) {
  const { diagnostic: reason } = email;
  return {
    RecordType: 'SubscriptionChange',
    ...common(email),
    ChangedAt: timeOf(email),
    Origin: reason === 'complaint' || reason === 'unsubscribed' ? 'Recipient' : 'Customer',
    SuppressSending: isSuppressed,
    SuppressionReason: isSuppressed ? suppressionReasonOf(reason) : null,
  };
}

function suppressionReasonOf(reason: string): string {
  if (/^(?:hard|soft) bounce/.test(reason)) return 'HardBounce';
  return reason.startsWith('complaint') ? 'SpamComplaint' : 'ManualSuppression';
}

function timeOf({ at }: EmailEvent): string {
  return new Date(at).toISOString();
}
