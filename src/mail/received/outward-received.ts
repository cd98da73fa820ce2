/** A received mail as its users see it, in the API and in webhooks of our own format. */
import {
  answeredEmail,
  type ReceivedAttachment,
  type ReceivedContent,
  type ReceivedMail,
} from '#mail/received/received-mail.ts';
import { iso } from '#platform/base/clock.ts';
import { isReceivedTest } from '#platform/values/test-route.ts';

interface Links {
  raw: string;
  text: string;
  html: string;
  attachments: string[];
  expiresAt: number;
}

type Fitting = 'attachments' | 'headers' | 'reply' | 'text' | 'html';

/**
 * `content` null: the mail could not be parsed. A member that would make the answer longer than `maxBytes` is null and named in
 * `omitted`; the links lead to it.
 */
export function outwardReceived(
  mail: ReceivedMail,
  content: ReceivedContent | null,
  links: Links,
  maxBytes: number,
) {
  const summary = outwardSummary(mail);
  let left = maxBytes - sizeOf(summary);
  const omitted: Fitting[] = [];
  const fitting = <Value>(name: Fitting, value: Value): Value | null => {
    // A text of 24 MB is not written out on this thread, where all requests wait, to learn that it is too long.
    const size = typeof value === 'string' && value.length > left ? value.length : sizeOf(value);
    if (size <= left) {
      left -= size;
      return value;
    }
    omitted.push(name);
    return null;
  };
  const attachments = mail.summary.attachments.map((one) => outwardAttachment(one, links));
  return {
    ...summary,
    attachments: fitting('attachments', attachments),
    headers: fitting('headers', content?.headers ?? []),
    reply: fitting('reply', content?.reply ?? ''),
    text: fitting('text', content?.text ?? ''),
    html: fitting('html', content?.html ?? null),
    omitted,
    links: { raw: links.raw, text: links.text, html: links.html, expiresAt: iso(links.expiresAt) },
  };
}

/** The members that lists have. */
export function outwardSummary(mail: ReceivedMail) {
  const { summary, routeId } = mail;
  return {
    receivedId: mail.id,
    receivedAt: iso(mail.at),
    ...(isReceivedTest(mail) && { test: true as const }),
    domain: mail.domain,
    recipients: mail.recipients,
    sender: mail.sender,
    from: mail.fromHeader,
    subject: mail.subject,
    messageId: mail.messageId,
    inReplyTo: answeredEmail(mail),
    isReadable: summary.isReadable,
    isAutomatic: summary.isAutomatic,
    preview: summary.preview,
    attachmentCount: summary.attachments.length,
    size: mail.size,
    client: { address: mail.peer, helo: mail.helo, tls: summary.tls },
    verdicts: summary.verdicts,
    spam: summary.spam,
    routeId,
  };
}

function outwardAttachment(one: ReceivedAttachment, links: Links) {
  const { position, filename, type: contentType, size, contentId, isInline } = one;
  return { position, filename, contentType, size, contentId, isInline, url: links.attachments[position]! };
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
