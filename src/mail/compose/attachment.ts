/**
 * Attached files as parts of the message, and where each belongs. nodemailer writes the parameters of their headers
 * (RFC 2231).
 */
import { isAscii } from 'node:buffer';
import { buildHeaderValue, detectMimeType, parseHeaderValue } from '#platform/vendor/nodemailer.ts';
import { encodedText, field } from './field.ts';
import { invitationOf } from './invitation.ts';
import { hasLongLine } from './long-lines.ts';
import { leaf, type MimePart } from './part.ts';
import { toSevenBit } from './seven-bit.ts';
import { base64, type Encoded, encodeText, quotedPrintable, toCrlf } from './transfer-encoding.ts';

export interface Attachment {
  filename: string;
  content: Buffer;
  contentType?: string;
  /** Without angle brackets; unique in a mail. Any text (content-ids/content-ids.ts). */
  contentId?: string;
  disposition?: 'attachment' | 'inline';
  /** An invitation that is not attached as a file, too. */
  isOnlyAlternative?: boolean;
}

export interface AttachedParts {
  /** Parts of multipart/mixed, beside the whole content. */
  files: MimePart[];
  /** Parts of multipart/related (RFC 2387), beside the HTML, whose `cid:` URLs find them. */
  related: MimePart[];
  /** Parts of multipart/alternative. */
  invitation: MimePart | null;
}

/** A Content-ID says where a file belongs; its disposition only says how readers show it. Without HTML, nothing can refer to it. */
export function attachedParts(attachments: Attachment[], hasHtml: boolean): AttachedParts {
  const files: MimePart[] = [];
  const related: MimePart[] = [];
  let invitation: MimePart | null = null;
  for (const attachment of attachments) {
    // Readers show one alternative, so a second invitation is only attached.
    const invited: MimePart | null = invitation ? null : invitationOf(attachment);
    invitation ??= invited;
    if (invited && attachment.isOnlyAlternative) continue;
    const part = attachmentPart(invited ? { ...attachment, contentType: 'application/ics' } : attachment);
    if (hasHtml && attachment.contentId) related.push(part);
    else files.push(part);
  }
  return { files, related, invitation };
}

function attachmentPart(attachment: Attachment): MimePart {
  const { filename, content, contentType, contentId } = attachment;
  const given = typeOf(contentType || typeByName(filename));
  const { type, params, encoded } = carried(given, content);
  const contentTypeHeader = buildHeaderValue({ value: type, params });
  // Only images are shown by their Content-ID. Readers hide other files that are inline, so these have to ask for it.
  const usual = contentId && /^image\//i.test(type) ? 'inline' : 'attachment';
  const disposition = attachment.disposition ?? usual;
  return leaf(
    `${contentTypeHeader}; name=${parameter(encodedText(filename))}`,
    encoded,
    ...(contentId ? [field('Content-ID', `<${contentId}>`)] : []),
    field('Content-Disposition', buildHeaderValue({ value: disposition, params: { filename } })),
  );
}

/** The type by its extension; nodemailer also takes the whole name `text` or `pdf` for one. */
function typeByName(filename: string): string {
  const extension = /[^/]\.([^./]+)$/.exec(filename)?.[1];
  return extension === undefined ? 'application/octet-stream' : detectMimeType(`x.${extension}`);
}

/** A file is never a multipart, whatever type the caller gives. Its name is `filename`, not a parameter of the type. */
function typeOf(given: string): FileType {
  const { value, params } = parseHeaderValue(given, { stripComments: true });
  const type = value.replace(/[\x00-\x1f\x7f]/g, '');
  if (/^multipart\//i.test(type)) return { type: 'application/octet-stream', params: {} };
  const others = Object.entries(params).filter(([name]) => !/^name(\*|$)/i.test(name));
  return { type, params: Object.fromEntries(others) };
}

/**
 * The `name` parameter for mail programs that support neither Content-Disposition nor RFC 2231. It may be an encoded word,
 * although no standard allows one here.
 */
function parameter(value: string): string {
  return /[\s'"\\;:/=(),<>@[\]?]|^-/.test(value) ? JSON.stringify(value) : value;
}

interface FileType {
  type: string;
  params: Record<string, string>;
}

/**
 * Base64 carries any content. An attached message must not be encoded as a whole (RFC 2046 section 5.2.1): it is made
 * ASCII part by part, and is a file like any other if that is not possible, or if SMTP cannot carry its lines.
 */
function carried({ type, params }: FileType, content: Buffer): FileType & { encoded: Encoded } {
  if (/^text\//i.test(type)) return { type, params, encoded: encodedTextFile(content) };
  const inBase64: Encoded = { encoding: 'base64', bytes: base64(content) };
  if (!/^message\//i.test(type)) return { type, params, encoded: inBase64 };
  const lines = Buffer.from(toCrlf(content.toString('latin1')), 'latin1');
  const isChanged = /^message\/(rfc822|global)$/i.test(type) && !hasLongLine(lines);
  const bytes = isChanged ? toSevenBit(lines) : lines;
  return isAscii(bytes) && isLines(bytes)
    ? { type, params, encoded: { encoding: '7bit', bytes } }
    : { type: 'application/octet-stream', params: {}, encoded: inBase64 };
}

/**
 * Spam filters count base64 of ASCII text against a mail. Every byte stays: line ends other than CRLF are escaped, because
 * a host would change them.
 */
function encodedTextFile(content: Buffer): Encoded {
  // Some readers see a line end in text of no bytes.
  const isEmpty = content.length === 0;
  if (isEmpty || !isAscii(content) || content.includes(0))
    return { encoding: 'base64', bytes: base64(content) };
  const text = content.toString('latin1');
  const hasOtherEnds = /\r(?!\n)|(?<!\r)\n/.test(text);
  const result: Encoded = hasOtherEnds
    ? { encoding: 'quoted-printable', bytes: quotedPrintable(content) }
    : encodeText(text);
  if (result.bytes.length <= Math.max(maxShort, maxGrowth * content.length)) return result;
  return { encoding: 'base64', bytes: base64(content) };
}

/** A file of bytes that are all escaped would become three times as long, and hosts limit the size of a mail. */
const maxGrowth = 1.5;
/** Below this size, the length of a file does not matter. */
const maxShort = 8192;

/** Whether SMTP can carry the lines (RFC 5321 section 4.5.3.1.6), and there is no NUL. */
function isLines(content: Buffer): boolean {
  const text = content.toString('latin1');
  return !text.includes('\0') && text.split(/\r\n?|\n/).every((line) => line.length <= 998);
}
