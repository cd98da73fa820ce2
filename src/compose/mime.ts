/**
 * Fields to bytes: the RFC 5322 message of a send, unsigned. The MIME is nodemailer's composer, which is given no
 * way to files or URLs.
 *
 * What leaves here has CRLF line ends alone: the composer's quoted-printable lets a bare CR of the caller's text
 * through, and a bare CR on the wire is a line end to some receivers and none to others (RFC 5321 section 2.3.8).
 */
import MailComposer from 'nodemailer/lib/mail-composer';
import { encodeWord } from 'nodemailer/lib/mime-funcs';
import { parseMailbox } from '../address.ts';
import type { Mailbox } from '../nouns.ts';
import { toBytes } from './bytes.ts';
import { type CustomHeaders, splitHeaders } from './headers.ts';

export interface Attachment {
  filename: string;
  content: Buffer;
  contentType?: string;
}

export interface Fields {
  from: Mailbox;
  to: string[];
  replyTo?: string;
  subject: string;
  html?: string;
  text?: string;
  attachments: Attachment[];
  headers: CustomHeaders;
  /** Without angle brackets; a Message-ID header of the caller's goes before it. */
  messageId: string;
  date: number;
}

/** The message, and its Message-ID without angle brackets. */
export async function composeMime(fields: Fields): Promise<{ raw: Buffer; messageId: string }> {
  const { own, custom } = splitHeaders(fields.headers);
  const messageId = own['message-id']?.replace(/^<|>$/g, '') ?? fields.messageId;
  const composer = new MailComposer({
    from: { name: fields.from.name, address: fields.from.address },
    to: fields.to.map((address) => ({ name: '', address })),
    replyTo: addressee(own['reply-to'] ?? fields.replyTo),
    sender: addressee(own.sender),
    date: own.date ? new Date(own.date) : new Date(fields.date),
    messageId: `<${messageId}>`,
    html: fields.html ? lines(fields.html) : undefined,
    text: fields.text ? lines(fields.text) : undefined,
    headers: [{ key: 'Subject', value: fields.subject }, ...custom].map(field),
    attachments: fields.attachments.map(part),
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return { raw: await toBytes(composer.compile()), messageId };
}

/** Parsed by us: given as text, the composer would make two addresses of `Lee, Ann <a@b>`. */
function addressee(text: string | undefined): { name: string; address: string } | undefined {
  return (text && parseMailbox(text)) || undefined;
}

/**
 * Printable ASCII that folding can lay out in lines of 998 octets at most (RFC 5322 section 2.1.1), none of which is
 * white space alone (section 3.2.2).
 */
const foldable = /^[\x21-\x7e]{1,900}(?:[ \t]{1,20}[\x21-\x7e]{1,900})*$/;

/**
 * A header with its value as given where that can be folded, encoded (RFC 2047) where not. The composer encodes what
 * is not ASCII; but it folds white space onto lines of its own, never cuts a word, and encodes every quote, which
 * belies structured values. References it reads as a list of ids.
 */
function field({ key, value }: { key: string; value: string }) {
  const isAscii = /^[\x20-\x7e\t]+$/.test(value);
  if (!isAscii || /^references$/i.test(key)) return { key, value };
  const isFoldable = foldable.test(value);
  if (isFoldable && value.includes('=?')) return { key, value };
  const written = isFoldable ? value : encodeWord(value, 'Q', 52);
  return { key, value: { prepared: true, foldLines: true, value: written } };
}

function lines(text: string): string {
  return text.replace(/\r\n?|\n/g, '\r\n');
}

/**
 * Base64 carries any content as it is; but RFC 2046 section 5.2.1 forbids encoding a message within a message. A file
 * is no multipart: of one, the composer would make a tree without branches.
 */
function part({ filename, content, contentType: given }: Attachment) {
  const contentType = given && /^multipart\//i.test(given) ? 'application/octet-stream' : given;
  // Attached is what the caller said; the composer would show a message inline.
  const named = { filename, contentType, contentDisposition: 'attachment' as const };
  const isMessage = contentType !== undefined && /^message\//i.test(contentType);
  if (!isMessage || !isLines(content)) {
    return { ...named, content, contentTransferEncoding: 'base64' as const };
  }
  return { ...named, content: Buffer.from(lines(content.toString('latin1')), 'latin1') };
}

/** Lines that SMTP can carry: RFC 5321 section 4.5.3.1.6, and no NUL. */
function isLines(content: Buffer): boolean {
  const text = content.toString('latin1');
  return !text.includes('\0') && text.split(/\r\n?|\n/).every((line) => line.length <= 998);
}
