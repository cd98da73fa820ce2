/** Resend's webhooks: https://resend.com/docs/webhooks/emails/sent and the other pages of events. */

import { resendReceived } from '#mail/webhooks/received/resend-received.ts';
import type { WrittenType } from '#mail/webhooks/subscribed-types.ts';
import { boundedJson } from './bounded-json.ts';
import { type EmailEvent, emailEventOf } from './email-event.ts';
import { newStandardSecret, standardHeaders } from './standard-format.ts';
import type { WebhookFormat } from './webhook-format.ts';

/** Our event types, and Resend's names for them. */
export const resendTypes: Readonly<Record<string, string>> = {
  'email.scheduled': 'email.scheduled',
  'email.queued': 'email.sent',
  'email.delivered': 'email.delivered',
  'email.deferred': 'email.delivery_delayed',
  'email.bounced': 'email.bounced',
  'email.expired': 'email.failed',
  'email.canceled': 'email.failed',
  'email.complained': 'email.complained',
  'email.suppressed': 'email.suppressed',
  'email.opened': 'email.opened',
  'email.clicked': 'email.clicked',
  'email.received': 'email.received',
} satisfies Record<WrittenType<'resend'>, string>;

export const resend: WebhookFormat = {
  hasSeveralSignatures: true,
  newSecret: () => ({ secret: newStandardSecret(), publicKey: null }),
  contentType: 'application/json',
  write(event) {
    const email = emailEventOf(event);
    const at = new Date(email.at).toISOString();
    return boundedJson({ type: resendTypes[email.type], created_at: at, data: dataOf(email, at) });
  },
  headersOf: standardHeaders,
  writeReceived: resendReceived,
};

function dataOf(email: EmailEvent, at: string) {
  const { tag, tags } = email;
  return {
    email_id: email.emailId,
    message_id: `<${email.messageId}>`,
    created_at: at,
    from: email.from,
    to: [email.recipient],
    subject: email.subject,
    tags: tag === null ? tags : { ...tags, tag },
    ...detailsOf(email, at),
  };
}

function detailsOf(email: EmailEvent, at: string): object {
  const { type, diagnostic, ip: ipAddress, userAgent } = email;
  switch (type) {
    case 'email.bounced':
      return { bounce: { message: diagnostic, type: bounceType(email), subType: subTypeOf(email) } };
    case 'email.expired':
    case 'email.canceled':
      return { failed: { reason: diagnostic } };
    case 'email.suppressed':
      return {
        suppressed: { message: 'The address is on the suppression list.', type: 'OnAccountSuppressionList' },
      };
    case 'email.opened':
      return { open: { ipAddress, timestamp: at, userAgent } };
    case 'email.clicked':
      return { click: { ipAddress, link: email.url, timestamp: at, userAgent } };
    default:
      return {};
  }
}

function bounceType({ bounce }: EmailEvent): string {
  return bounce?.type === 'hard' ? 'Permanent' : 'Transient';
}

/** The kinds of bounces that Amazon SES names, which Resend passes on. */
function subTypeOf({ category }: EmailEvent): string {
  if (category === 'mailbox_full') return 'MailboxFull';
  if (category === 'size') return 'MessageTooLarge';
  if (category === 'content' || category === 'spam') return 'ContentRejected';
  return 'General';
}
