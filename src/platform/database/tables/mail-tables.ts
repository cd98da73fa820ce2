/**
 * The tables of emails and deliveries: each column is declared once, here. Acceptance writes these rows; the record of an email,
 * the searches and the queue read them, or some of their columns (`pick`). What of an attempt is packed is declared in
 * platform/database/tables/packed-records.ts, opens and clicks in mail/record/rows/engagement.ts.
 */

import {
  flag,
  inColumn,
  json,
  number,
  orNull,
  records,
  text,
  value,
} from '#platform/database/engine/records.ts';
import type {
  Bounce,
  DeliveryStatus,
  DialectName,
  MailTls,
  RecipientKind,
} from '#platform/values/glossary.ts';

export const emails = records({
  id: text,
  orgId: text,
  /** Null: sent in the dashboard. */
  keyId: orNull(text),
  /** Null: sent through our own API, by submission or in the dashboard. */
  dialect: orNull(value<DialectName>()),
  /** Test mail (platform/values/test-route.ts): it costs nothing. */
  isTest: flag,
  /** Null: `transactional` (platform/values/stream.ts). */
  stream: orNull(text),
  /** Message-ID without its angle brackets. */
  messageId: text,
  from: inColumn('sender', text),
  replyTo: orNull(text),
  subject: text,
  /** With display names, in the order of the deliveries; empty if none of them has one: a row stays as long as its email. */
  recipients: json<string[]>(),
  tags: json<Record<string, string>>(),
  /** Most mails have neither, and `{}`. */
  tracking: {
    read: (stored: string) =>
      ({ openTracking: false, clickTracking: false, ...JSON.parse(stored) }) as Tracking,
    write: (given: Tracking) => (given.openTracking || given.clickTracking ? JSON.stringify(given) : '{}'),
  },
  /** Most mails have an empty text: opportunistic. */
  tls: {
    read: (stored: string) => (stored === '' ? 'opportunistic' : stored) as MailTls,
    write: (given: MailTls) => (given === 'opportunistic' ? '' : given),
  },
  credits: number,
  /** How many of the credits were taken from the wallet. */
  walletCredits: number,
  /** When the deliveries start; null: at once. */
  scheduledAt: orNull(number),
  createdAt: number,
  updatedAt: number,
});

export type EmailRow = ReturnType<typeof emails.read>;

interface Tracking {
  openTracking: boolean;
  clickTracking: boolean;
}

export const deliveries = records({
  id: text,
  emailId: text,
  orgId: text,
  /** The row of the message's bytes; null for a recipient that was never queued. */
  messageId: orNull(text),
  /** In the order to, cc, bcc. */
  position: number,
  kind: value<RecipientKind>(),
  recipient: text,
  domain: text,
  status: value<DeliveryStatus>(),
  attempts: number,
  /** When the queue handles it next: the next attempt or, while it is sent, the end of the lease; null: never. */
  dueAt: orNull(number),
  leaseOwner: orNull(text),
  createdAt: number,
  /** When the state last changed. */
  updatedAt: number,
  expiresAt: number,
  /** The sender has set `expiresAt`: no attempt starts at or after it. */
  hasDeadline: flag,
  deliveredAt: orNull(number),
  bounce: orNull(json<Bounce>()),
});
