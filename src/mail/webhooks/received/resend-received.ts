/**
 * Resend's `email.received`: https://resend.com/docs/webhooks/emails/received. It has no content: the application reads it with
 * calls to Resend's API, which front/dialects/resend/ answers.
 */
import type { ReceivedContent, ReceivedMail } from '#mail/received/received-mail.ts';
import { iso } from '#platform/base/clock.ts';
import { mailboxesIn } from './received-fields.ts';
import { jsonBody, type WriteReceived } from './received-post.ts';

export const resendReceived: WriteReceived = ({ mail, content }) => jsonBody(resendEvent(mail, content));

export function resendEvent(mail: ReceivedMail, content: ReceivedContent | null) {
  const { bcc, cc, ...members } = resendMembers(mail, content);
  return {
    type: 'email.received',
    created_at: iso(mail.at),
    data: {
      email_id: mail.id,
      ...members,
      bcc: bcc ?? [],
      cc: cc ?? [],
      attachments: mail.summary.attachments.map((file) => {
        const { size: _, ...rest } = resendAttachment(file);
        return rest;
      }),
    },
  };
}

/** The members that Resend's API shows, too. */
export function resendMembers(mail: ReceivedMail, content: ReceivedContent | null) {
  const listed = (name: string) => {
    const list = content ? mailboxesIn(content, name) : [];
    return list.length > 0 ? list.map(({ address }) => address) : null;
  };
  return {
    created_at: iso(mail.at),
    from: mail.fromHeader,
    to: listed('to') ?? mail.recipients,
    bcc: listed('bcc'),
    cc: listed('cc'),
    received_for: mail.recipients,
    message_id: mail.messageId === null ? '' : `<${mail.messageId}>`,
    subject: mail.subject,
  };
}

export function resendAttachment({
  position,
  filename,
  type,
  size,
  contentId,
  isInline,
}: ReceivedMail['summary']['attachments'][number]) {
  return {
    id: String(position),
    filename,
    size,
    content_type: type,
    content_disposition: isInline ? 'inline' : 'attachment',
    content_id: contentId,
  };
}
