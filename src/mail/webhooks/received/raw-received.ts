/** The mail itself, as Rails' Action Mailbox takes it at its relay ingress. What SMTP says of it comes first. */
import { onOneLine } from './received-fields.ts';
import { originalTo, type WriteReceived } from './received-post.ts';

export const rawType = 'message/rfc822';

export const rawReceived: WriteReceived = ({ mail, raw }) => {
  const head = `Return-Path: <${onOneLine(mail.sender)}>\r\n${originalTo(mail)}`;
  return { contentType: rawType, body: Buffer.concat([Buffer.from(head), raw]) };
};
