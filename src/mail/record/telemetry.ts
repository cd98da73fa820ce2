/**
 * The stored email as users see it: the response of GET /api/public/email/:id (docs/design.md section 3) and the output of
 * the command line. Times are ISO 8601; unknown values are null.
 */

import type { DeliveryRecord, EmailRecord } from '#mail/record/rows/emails.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import type { RecipientKind } from '#platform/values/glossary.ts';
import { statusOf } from '#platform/values/states.ts';
import type { Tally } from './visit.ts';

export function telemetry(email: EmailRecord) {
  return {
    emailId: email.id,
    id: email.messageId,
    status: statusOf(email.deliveries.map(({ status }) => status)),
    from: email.from,
    to: addressesOf(email, 'to'),
    cc: addressesOf(email, 'cc'),
    bcc: addressesOf(email, 'bcc'),
    replyTo: email.replyTo,
    subject: email.subject,
    tags: email.tags,
    ...(email.stream !== null && { stream: email.stream }),
    tracking: email.tracking,
    ...(email.isTest && { test: true as const }),
    credits: email.credits,
    ...(email.dialect !== null && { dialect: email.dialect }),
    scheduledAt: isoOrNull(email.scheduledAt),
    expiresAt: iso(expiresAtOf(email)),
    createdAt: iso(email.createdAt),
    updatedAt: iso(email.updatedAt),
    recipients: email.deliveries.map(recipient),
    events: email.events.map(({ id, type, at, recipient, data }) => ({
      id,
      type,
      timestamp: iso(at),
      recipient,
      data: { tags: email.tags, ...data },
    })),
  };
}

export function addressesOf({ deliveries }: EmailRecord, wanted: RecipientKind): string[] {
  return deliveries.filter(({ kind }) => kind === wanted).map(({ recipient }) => recipient);
}

/** A hold or a pause extends it for some recipients, unless the sender has set it. */
export function expiresAtOf({ deliveries }: EmailRecord): number {
  return Math.max(...deliveries.map(({ expiresAt }) => expiresAt));
}

function recipient(delivery: DeliveryRecord) {
  const { status, attempts, mx, tls, bounce } = delivery;
  return {
    address: delivery.recipient,
    kind: delivery.kind,
    status,
    attempts,
    nextAttemptAt: isoOrNull(delivery.nextAttemptAt),
    deliveredAt: isoOrNull(delivery.deliveredAt),
    lastResponse: delivery.lastReply,
    mx,
    tls,
    opens: engagement(delivery.opens),
    clicks: engagement(delivery.clicks),
    bounce,
  };
}

function engagement({ count, firstAt, lastAt }: Tally) {
  return { count, firstAt: isoOrNull(firstAt), lastAt: isoOrNull(lastAt) };
}
