/**
 * Makes a whole message ASCII, in lines of at most 998 octets, before it is signed: bodies become quoted-printable or base64,
 * text in header fields becomes encoded words (RFC 2047) or parameters (RFC 2231). A host without 8BITMIME or SMTPUTF8 could
 * not take the message as it was, and a host that re-encodes it for the next one breaks the signature. Postfix goes by the
 * label: a part that says 8bit gets another one, even if it is ASCII. Text without a charset gets the one that it is in.
 *
 * Text that cannot be ASCII stays as it is: addresses with a non-ASCII local part, which need SMTPUTF8 (RFC 6532), and what is
 * signed or encrypted (RFC 1847), because it would break.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { decodeWords } from 'postal-mime';
import { type Edit, splice } from '#platform/base/splice.ts';
import { buildHeaderValue, encodeWord, parseHeaderValue } from '#platform/vendor/nodemailer.ts';
import { encodedText, field, foldable, mailbox } from './field.ts';
import { type Field, fieldValue } from './head.ts';
import { parseAddresses } from './header-grammar.ts';
import { hasLongLine, sealed, unencoded } from './long-lines.ts';
import { type MimeTreePart, readTree } from './mime-tree.ts';
import { base64, decoded, isMostlyLetters, quotedPrintable } from './transfer-encoding.ts';

/** Messages inside messages. */
const maxDepth = 5;

/** The message, which is not copied if it is right already. Lines end with CRLF. */
export function toSevenBit(raw: Buffer, depth = 0): Buffer {
  if (isPlain(raw)) return raw;
  const tree = depth > maxDepth ? null : readTree(raw);
  if (!tree) return raw;
  const edits = editsOf(raw, tree, depth).sort((a, b) => a.start - b.start || a.end - b.end);
  return splice(raw, edits);
}

const label = /^content-transfer-encoding:\s*(?:8bit|binary)/im;

function isPlain(bytes: Buffer): boolean {
  return isAscii(bytes) && !hasLongLine(bytes) && !label.test(bytes.toString('latin1'));
}

function editsOf(raw: Buffer, part: MimeTreePart, depth: number): Edit[] {
  if (isPlain(raw.subarray(part.start, part.end))) return [];
  if (sealed.test(part.type)) return fieldEdits(raw, part, null);
  if (part.children.length > 0) {
    const inside = part.children.flatMap((child) => editsOf(raw, child, depth));
    return [...fieldEdits(raw, part, '7bit'), ...gapEdits(raw, part), ...inside];
  }
  const body = raw.subarray(part.head.bodyStart, part.end);
  const { encoding, bytes } = reencoded(part, body, depth) ?? { encoding: null, bytes: body };
  const bodyEdit = { start: part.head.bodyStart, end: part.end, bytes };
  return [...fieldEdits(raw, part, encoding), ...(bytes === body ? [] : [bodyEdit])];
}

/** The text before the first part and after the last, which readers do not show: its other octets become question marks. */
function gapEdits(raw: Buffer, { head, end, children }: MimeTreePart): Edit[] {
  const starts = [head.bodyStart, ...children.map((child) => child.end)];
  const ends = [...children.map((child) => child.start), end];
  return starts.flatMap((start, index) => {
    const bytes = raw.subarray(start, ends[index]!);
    if (isAscii(bytes) && !hasLongLine(bytes)) return [];
    const text = bytes
      .toString('latin1')
      .replace(/[\x80-\xff]/g, '?')
      .replace(/[^\r\n]{900}/g, '$&\r\n');
    return [{ start, end: ends[index]!, bytes: Buffer.from(text, 'latin1') }];
  });
}

/** The body of a part without children; null if it stays, with its label. */
function reencoded(
  { type, encoding }: MimeTreePart,
  body: Buffer,
  depth: number,
): { encoding: string; bytes: Buffer } | null {
  const isUnencoded = unencoded.test(encoding);
  if (isUnencoded && /^message\/(rfc822|global)$/.test(type)) {
    const bytes = toSevenBit(body, depth + 1);
    return isAscii(bytes) ? { encoding: '7bit', bytes } : null;
  }
  const isLong = hasLongLine(body);
  if (isAscii(body) && !isLong) return isUnencoded ? { encoding: '7bit', bytes: body } : null;
  // No encoding may be used for other kinds of messages (RFC 2046 section 5.2, RFC 3464 section 2.1).
  if (type.startsWith('message/')) return null;
  if (encoding === 'quoted-printable') return { encoding, bytes: quotedPrintable(decoded(body, encoding)!) };
  if (encoding === 'base64' && isLong) return { encoding, bytes: inLines(body) };
  if (!isUnencoded) return null;
  const isText = type.startsWith('text/') && isMostlyLetters(body.toString(isUtf8(body) ? 'utf8' : 'latin1'));
  return isText
    ? { encoding: 'quoted-printable', bytes: quotedPrintable(body) }
    : { encoding: 'base64', bytes: base64(body) };
}

/** Base64 in lines of 76, whatever its lines were. */
function inLines(body: Buffer): Buffer {
  const text = body.toString('latin1').replace(/\s+/g, '');
  return Buffer.from(text.replace(/.{76}(?=.)/g, '$&\r\n'), 'latin1');
}

/** `encoding`: the one that the part gets; null if it keeps its own. */
function fieldEdits(raw: Buffer, part: MimeTreePart, encoding: string | null): Edit[] {
  const { head } = part;
  const charset = encoding === null ? null : missingCharset(raw, part);
  const isLabel = ({ name }: Field) => encoding !== null && name === 'content-transfer-encoding';
  const edits = head.fields.flatMap((one): Edit[] => {
    const { start, end } = one;
    if (isLabel(one)) return [{ start, end, bytes: Buffer.alloc(0) }];
    const octets = raw.subarray(start, end);
    const isTyped = charset !== null && one.name === 'content-type';
    const isFine = isAscii(octets) && !hasLongLine(octets) && !isTyped;
    const text = isFine ? null : asciiField(one, isTyped ? charset : null);
    return text === null ? [] : [{ start, end, bytes: Buffer.from(`${text}\r\n`) }];
  });
  const isTypeMissing = charset !== null && fieldValue(head, 'content-type') === null;
  const isLabelMissing = encoding !== null && (encoding !== '7bit' || head.fields.some(isLabel));
  const added = [
    ...(isTypeMissing ? [`Content-Type: text/plain; charset=${charset}\r\n`] : []),
    ...(isLabelMissing ? [`Content-Transfer-Encoding: ${encoding}\r\n`] : []),
  ];
  return [...edits, { start: head.end, end: head.end, bytes: Buffer.from(added.join('')) }];
}

/**
 * The charset of a text that declares none, or one without these octets: UTF-8 if it is valid, and windows-1252 if it has
 * octets from 0x80 to 0x9F, which are letters nowhere else in the West. Null if it has one, or could be in several.
 */
function missingCharset(raw: Buffer, { type, charset, isAttached, encoding, head, end }: MimeTreePart) {
  const body = raw.subarray(head.bodyStart, end);
  const isPart = type.startsWith('text/') && !isAttached && unencoded.test(encoding);
  if (!isPart || isAscii(body)) return null;
  const isWithMeta =
    type === 'text/html' && /<meta[^>]{0,200}charset/i.test(body.toString('latin1', 0, 4096));
  const isUndeclared = charset === 'us-ascii' && !isWithMeta;
  if (isUtf8(body)) return isUndeclared ? 'utf-8' : null;
  const isWindows = body.some((octet) => octet >> 5 === 4);
  return isWindows && (isUndeclared || charset === 'iso-8859-1') ? 'windows-1252' : null;
}

/** Folding a value takes time that grows with the square of its length. */
const maxValueLength = 8192;

const withAddresses =
  /^(resent-)?(from|sender|reply-to|to|cc)$|^(disposition-notification|return-receipt|errors)-to$/;
const withParameters = /^content-(type|disposition)$/;
/** Encoded words have no meaning in them (RFC 2047 section 5). */
const structured =
  /^((resent-)?(date|message-id)|references|in-reply-to|mime-version|content-.*|list-.*|dkim-signature|arc-.*|return-path)$/;

/** The field as ASCII, without its last CRLF; null if that is not possible. */
function asciiField({ name, label, value }: Field, charset: string | null): string | null {
  if (value.length > maxValueLength) return null;
  const written = asciiValue(name, value, charset);
  return written !== null && foldable.test(written) ? field(label, written).text : null;
}

function asciiValue(name: string, value: string, charset: string | null): string | null {
  if (withParameters.test(name)) {
    const parsed = parseHeaderValue(value, { stripComments: true });
    return buildHeaderValue(charset === null ? parsed : { ...parsed, params: { ...parsed.params, charset } });
  }
  if (withAddresses.test(name)) {
    const addresses = parseAddresses(value);
    return addresses?.map((one) => mailbox({ ...one, name: shown(one.name) })).join(', ') ?? null;
  }
  if (structured.test(name)) return foldable.test(value) ? value : null;
  return text(shown(value));
}

function text(value: string): string {
  const written = encodedText(value);
  return foldable.test(written) ? written : encodeWord(value, 'B', maxWordLength);
}

/** Decoded, because what is encoded again would be shown as encoded words. */
function shown(value: string): string {
  return decodeWords(value).toWellFormed().trim();
}

const maxWordLength = 52;
