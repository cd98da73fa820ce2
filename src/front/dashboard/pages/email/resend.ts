/**
 * Sends an email again: the stored message without its Message-ID, date, signatures and tracking goes to `accept` like a
 * submitted message. The result is a new email: checked, charged, with its own id.
 */

import { idempotencyOf } from '#front/dashboard/sending.ts';
import type { SendRequest } from '#mail/accept/accept.ts';
import { readHead } from '#mail/compose/head.ts';
import { editedParts } from '#mail/compose/html-parts.ts';
import type { EmailRecord } from '#mail/record/rows/emails.ts';
import { addressesOf } from '#mail/record/telemetry.ts';
import type { TrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { untracked } from '#mail/record/tracking/untracked.ts';
import type { MailTls } from '#platform/values/glossary.ts';
import { recipientsOf, withoutName } from '#platform/values/recipients.ts';

const ownFields = ['dkim-signature', 'message-id', 'date'];

interface Resend {
  email: EmailRecord;
  /** Without signatures and tracking. */
  raw: Buffer;
  /** The form's id. */
  once: string;
  requestId: string;
}

export function resendRequest({ email, raw, once, requestId }: Resend): SendRequest {
  return {
    recipients: recipientsOf({
      to: addressesOf(email, 'to').map(withoutName),
      cc: addressesOf(email, 'cc').map(withoutName),
      bcc: addressesOf(email, 'bcc').map(withoutName),
    }),
    from: email.from,
    subject: email.subject,
    replyTo: email.replyTo?.split(', ').map(withoutName),
    attachments: [],
    headers: {},
    tags: email.tags,
    tracking: email.tracking,
    idempotency: idempotencyOf(once, ['resend', email.id]),
    requestId,
    tlsRequired: ({ requiretls: true, 'not-required': false } as Partial<Record<MailTls, boolean>>)[
      email.tls
    ],
    rawMessage: { raw, messageId: null },
  };
}

/** The message as it was before it was signed and tracked. Called on a thread of its own. */
export function withoutSignatures(raw: Buffer, links: Pick<TrackingLinks, 'read'>): Buffer {
  const head = readHead(raw);
  const kept = head.fields
    .filter(({ name }) => !ownFields.includes(name))
    .map(({ start, end }) => raw.subarray(start, end));
  const whole = Buffer.concat([...kept, raw.subarray(head.end)]);
  const undone = editedParts<null>(whole, ({ html }) => {
    const before = untracked(html, links);
    return before === html ? null : () => before;
  });
  return undone ? undone(null) : whole;
}
