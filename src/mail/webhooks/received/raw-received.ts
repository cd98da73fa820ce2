/**
 * The mail itself, as Rails' Action Mailbox takes it at its relay ingress. What SMTP says of it comes first, in the fields with
 * which Postfix hands mail to programs: a recipient of a blind copy is in no other.
 */
import { onOneLine } from './received-fields.ts';
import type { WriteReceived } from './received-post.ts';

export const rawType = 'message/rfc822';

export const rawReceived: WriteReceived = ({ mail, raw }) => {
  const recipients = mail.recipients.map((recipient) => `X-Original-To: ${onOneLine(recipient)}\r\n`);
  const head = `Return-Path: <${onOneLine(mail.sender)}>\r\n${recipients.join('')}`;
  return { contentType: rawType, body: Buffer.concat([Buffer.from(head), raw]) };
};
