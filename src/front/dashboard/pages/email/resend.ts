/**
 * Sends an email again: the stored message without its Message-ID, date, signatures, tracking and our links to unsubscribe goes to
 * `accept` like a submitted message. The result is a new email: checked, charged, with its own id.
 */

import { idempotencyOfForm } from '#front/dashboard/sending.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { fieldValue, readHead } from '#mail/compose/head.ts';
import { editedParts } from '#mail/compose/html-parts.ts';
import type { EmailRecord } from '#mail/record/rows/emails.ts';
import { addressesOf } from '#mail/record/telemetry.ts';
import type { TrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { untracked } from '#mail/record/tracking/untracked.ts';
import type { EmailRow } from '#platform/database/tables/mail-tables.ts';
import type { MailTls } from '#platform/values/glossary.ts';
import { recipientsOf, withoutName } from '#platform/values/recipients.ts';

const ownFields = ['dkim-signature', 'message-id', 'date'];
/** Those of one recipient, which would unsubscribe that person when others click. */
const unsubscribeFields = ['list-unsubscribe', 'list-unsubscribe-post'];
const unsubscribeLink = /\/t\/u\/([\w-]{1,8000})/;

interface Resend {
  email: EmailRecord;
  /** Without signatures and tracking. */
  raw: Buffer;
  /** The form's id. */
  once: string;
  requestId: string;
}

type Kept = (email: EmailRecord) => Partial<SendRequest>;

/**
 * What each field of an email's record gives to the new send; null: the new email has one of its own, or its message has it. A
 * field without a line here does not compile, so that none is forgotten.
 */
export const sentAgain: Record<keyof EmailRow, Kept | null> = {
  id: null,
  orgId: null,
  keyId: null,
  dialect: null,
  // The sender of the new email says so.
  isTest: null,
  messageId: null,
  from: ({ from }) => ({ from }),
  replyTo: ({ replyTo }) => ({ replyTo: replyTo?.split(', ').map(withoutName) }),
  subject: ({ subject }) => ({ subject }),
  recipients: (email) => ({
    recipients: recipientsOf({
      to: addressesOf(email, 'to').map(withoutName),
      cc: addressesOf(email, 'cc').map(withoutName),
      bcc: addressesOf(email, 'bcc').map(withoutName),
    }),
  }),
  tags: ({ tags }) => ({ tags }),
  stream: ({ stream }) => ({ stream }),
  tracking: ({ tracking }) => ({ tracking }),
  tls: ({ tls }) => ({ tlsRequired: demandedTls[tls] }),
  credits: null,
  walletCredits: null,
  // Whoever sends again means now.
  scheduledAt: null,
  createdAt: null,
  updatedAt: null,
};

const demandedTls: Partial<Record<MailTls, boolean>> = { requiretls: true, 'not-required': false };

export function resendRequest({ email, raw, once, requestId }: Resend): SendRequest {
  const kept = Object.values(sentAgain).map((keep) => keep?.(email));
  return Object.assign(
    {
      attachments: [],
      headers: {},
      expiresAfter: lifetimeOf(email),
      idempotency: idempotencyOfForm(once, ['resend', email.id]),
      requestId,
      rawMessage: { raw, messageId: null },
    },
    ...kept,
  );
}

/** In seconds, if the sender had limited it: a code that is worth ten minutes is worth ten minutes again. */
function lifetimeOf({ deliveries, scheduledAt, createdAt }: EmailRecord): number | undefined {
  const [limited] = deliveries.filter(({ hasDeadline }) => hasDeadline);
  return limited && Math.round((limited.expiresAt - (scheduledAt ?? createdAt)) / 1000);
}

/** The message as it was before it was signed and tracked, and got its links. Called on a thread of its own. */
export function withoutSignatures(raw: Buffer, links: Pick<TrackingLinks, 'read'>): Buffer {
  const head = readHead(raw);
  const token = unsubscribeLink.exec(fieldValue(head, 'list-unsubscribe') ?? '')?.[1] ?? '';
  const hasOurLink = links.read('unsubscribe', token) !== null;
  const removed = hasOurLink ? [...ownFields, ...unsubscribeFields] : ownFields;
  const kept = head.fields
    .filter(({ name }) => !removed.includes(name))
    .map(({ start, end }) => raw.subarray(start, end));
  const whole = Buffer.concat([...kept, raw.subarray(head.end)]);
  const undone = editedParts<null>(whole, ({ html }) => {
    const before = untracked(html, links);
    return before === html ? null : () => before;
  });
  return undone ? undone(null) : whole;
}
