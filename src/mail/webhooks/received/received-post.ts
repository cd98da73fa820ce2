/**
 * What a post of `email.received` is written from. The functions that write one are pure, and run on the thread that reads
 * messages, because they work through all that a stranger has sent.
 */

import { isUtf8 } from 'node:buffer';
import { toSevenBit } from '#mail/compose/seven-bit.ts';
import type { ReceivedLinks } from '#mail/received/received-links.ts';
import type { ReceivedContent, ReceivedMail } from '#mail/received/received-mail.ts';
import { onOneLine } from './received-fields.ts';

export interface ReceivedPost {
  mail: ReceivedMail;
  /** Null: the mail could not be parsed. Its bytes are all that is known. */
  content: ReceivedContent | null;
  /** The bytes of an attachment. */
  file(position: number): Buffer;
  raw: Buffer;
  links: ReceivedLinks;
  /** For the formats whose signature is in the body. */
  signature: { timestamp: string; token: string; signature: string };
  /** True: written with all of the mail, the post was longer than `maxBody`. */
  isTooLong: boolean;
  /** Ends in `mime` for an endpoint that wants whole messages, as Mailgun's routes have it. */
  url: string;
}

export interface PostBody {
  contentType: string;
  body: Buffer;
}

export type WriteReceived = (post: ReceivedPost) => PostBody;

/** Of a whole mail in bytes: what is larger is posted with links to its parts. */
export const maxPostedMail = 10 * 1024 * 1024;

/** Of a post in bytes. Only text of characters that JSON and forms escape becomes so much longer than its mail. */
export const maxBody = 32 * 1024 * 1024;

export function jsonBody(value: unknown): PostBody {
  return { contentType: 'application/json', body: Buffer.from(JSON.stringify(value)) };
}

/** The mail as UTF-8, as which JSON and forms are read. Other bytes are encoded as MIME has it, which a reader undoes. */
function mimeText(raw: Buffer): Buffer {
  return isUtf8(raw) ? raw : toSevenBit(raw);
}

/** The recipients that SMTP names, in the field with which Postfix hands mail to programs: one of a blind copy is in no other. */
export function originalTo({ recipients }: ReceivedMail): string {
  return recipients.map((recipient) => `X-Original-To: ${onOneLine(recipient)}\r\n`).join('');
}

/**
 * The mail for a post that has all recipients in one text beside it. Rails' Action Mailbox writes that text into X-Original-To, and
 * finds only the first address there.
 */
export function mimeMail({ mail, raw }: ReceivedPost): Buffer {
  const head = mail.recipients.length > 1 ? originalTo(mail) : '';
  return Buffer.concat([Buffer.from(head), mimeText(raw)]);
}

/** Whether all of the mail is in the post. */
export function isWhole({ mail, isTooLong }: ReceivedPost): boolean {
  return !isTooLong && mail.size <= maxPostedMail;
}

/** Of the text and the HTML of a mail that is posted with links, in characters each. */
const maxPostedText = 1024 * 1024;

/** The texts of a mail for formats that have them in the post. `isCut`: some are left out, and links lead to them. */
export function textsOf(post: ReceivedPost) {
  const { text = '', html = null, reply = '' } = post.content ?? {};
  const texts = { text, html: html ?? '', reply };
  const fits = (one: string) => one.length <= maxPostedText && !post.isTooLong;
  if (isWhole(post) || Object.values(texts).every(fits)) return { ...texts, isCut: false };
  const kept = (one: string) => (fits(one) ? one : '');
  return { text: kept(text), html: kept(texts.html), reply: kept(reply), isCut: true };
}
