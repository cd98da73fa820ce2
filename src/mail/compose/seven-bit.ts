/**
 * Makes a whole message ASCII, in lines of at most 998 bytes, before it is signed: bodies become quoted-printable or base64, and
 * fields as ascii/ascii-field.ts says. A host without 8BITMIME or SMTPUTF8 could not take the message as it was, and a host that
 * re-encodes it for the next one breaks the signature. Postfix goes by the label: a part that says 8bit gets another one, even if
 * it is ASCII. A label in an odd spelling is written as the standard has it, and text gets the charset that it is in.
 *
 * Two things are not changed: addresses with a local part beyond ASCII, which need SMTPUTF8 (RFC 6532), and what is signed or
 * encrypted (RFC 1847), because it would break. An attached message that cannot be ASCII becomes a file.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { asciiField } from '#mail/compose/ascii/ascii-field.ts';
import { newCharset } from '#mail/compose/ascii/text-charset.ts';
import { type Edit, splice } from '#platform/base/splice.ts';
import { encodeWords } from '#platform/vendor/nodemailer.ts';
import { composed, type Field, fieldValue } from './head.ts';
import { hasLongLine, sealed, unencoded } from './long-lines.ts';
import { type MimeTreePart, readTree } from './mime-tree.ts';
import { base64, decoded, isMostlyLetters, quotedPrintable } from './transfer-encoding.ts';

/** Messages inside messages. */
const maxDepth = 5;

/** The message, which is not copied if it is right already. Lines end with CRLF. */
export function toSevenBit(raw: Buffer, depth = 0): Buffer {
  if (isPlain(raw)) return raw;
  const tree = depth > maxDepth ? null : readTree(raw, depth === 0 ? composed : undefined);
  if (!tree) return raw;
  const edits = editsOf(raw, tree, depth).sort((a, b) => a.start - b.start || a.end - b.end);
  return splice(raw, edits);
}

/**
 * A transfer encoding or a charset that must be looked at, at the beginning of a line: any but the usual ones. Bounded, because
 * the lines of a body are looked at, too.
 */
const unusual =
  /^(?:content-transfer-encoding:(?!\s{0,9}(?:7bit|base64|quoted-printable)[ \t]{0,9}$)|content-(?:type|disposition):\s{0,9}=\?|(?:content-type:|[ \t])[^\r\n]{0,200}charset[ \t]{0,9}=[ \t]{0,9}(?!"?(?:utf-8|us-ascii|iso-8859-\d{1,2}|windows-125\d|koi8-[ru]|iso-2022-jp|euc-(?:jp|kr)|shift_jis|gb2312|gbk|gb18030|big5)(?:["';\s>]|$)))/im;

/** The byte of a letter in quoted-printable that no byte follows as in UTF-8. */
const escapedOther = /=[C-F][0-9A-F](?!(?:=\r\n)?=[89AB])/;

function isPlain(bytes: Buffer): boolean {
  if (!isAscii(bytes) || hasLongLine(bytes)) return false;
  const text = bytes.toString('latin1');
  return !unusual.test(text) && !escapedOther.test(text);
}

function editsOf(raw: Buffer, part: MimeTreePart, depth: number): Edit[] {
  if (isPlain(raw.subarray(part.start, part.end))) return [];
  const isDelivered = depth === 0 && part.start === 0;
  if (sealed.test(part.type)) return fieldEdits(raw, part, { ...unchanged, isDelivered });
  if (part.children.length > 0) {
    const inside = part.children.flatMap((child) => editsOf(raw, child, depth));
    const body = { ...unchanged, encoding: '7bit', isDelivered };
    return [...fieldEdits(raw, part, body), ...gapEdits(raw, part), ...inside];
  }
  const body = raw.subarray(part.head.bodyStart, part.end);
  const { bytes, ...labels } = reencoded(part, body, depth);
  const charset = newCharset({ ...part, type: labels.type ?? part.type }, body);
  const edits = fieldEdits(raw, part, { ...labels, charset, isDelivered });
  return bytes === null ? edits : [...edits, { start: part.head.bodyStart, end: part.end, bytes }];
}

/** The text before the first part and after the last, which readers do not show: its other bytes become question marks. */
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

interface Reencoded {
  /** The new label; null if the part keeps its own. */
  encoding: string | null;
  /** The new type; null if the part keeps its own. */
  type: string | null;
  /** Null if the body stays. */
  bytes: Buffer | null;
}

const unchanged = { encoding: null, type: null, charset: null };
const opaque = (body: Buffer) => ({
  encoding: 'base64',
  type: 'application/octet-stream',
  bytes: base64(body),
});
const attachedMessage = /^message\/(rfc822|global)$/;
const maxReport = 64 * 1024;
const report = /^message\/(delivery-status|disposition-notification|feedback-report)$/;

/** The body of a part without children. */
function reencoded({ type, encoding }: MimeTreePart, body: Buffer, depth: number): Reencoded {
  const isUnencoded = unencoded.test(encoding);
  if (isUnencoded && attachedMessage.test(type)) {
    const bytes = toSevenBit(body, depth + 1);
    return isAscii(bytes) ? { encoding: '7bit', type: null, bytes } : opaque(body);
  }
  if (isAscii(body) && !hasLongLine(body)) {
    const isKnown = encoding === 'quoted-printable' || encoding === 'base64';
    return { encoding: isUnencoded ? '7bit' : isKnown ? encoding : null, type: null, bytes: null };
  }
  if (encoding === 'quoted-printable') {
    return { encoding, type: null, bytes: quotedPrintable(decoded(body, encoding)!) };
  }
  if (encoding === 'base64' && beginsAsBase64(body)) return { encoding, type: null, bytes: inLines(body) };
  // No encoding may be used for other kinds of messages (RFC 2046 section 5.2, RFC 3464 section 2.1).
  if (report.test(type) && body.length <= maxReport)
    return { encoding: '7bit', type: null, bytes: withEncodedWords(body) };
  return type.startsWith('message/') ? opaque(body) : encoded(type, body);
}

/** The bytes as they are, whatever the label says. */
function encoded(type: string, body: Buffer): Reencoded {
  // Without a boundary that occurs, readers show it as text.
  const isMultipart = type.startsWith('multipart/');
  const isText = type.startsWith('text/') && isMostlyLetters(body.toString(isUtf8(body) ? 'utf8' : 'latin1'));
  const newType = isMultipart ? 'text/plain' : null;
  return isText || isMultipart
    ? { encoding: 'quoted-printable', type: newType, bytes: quotedPrintable(body) }
    : { encoding: 'base64', type: newType, bytes: base64(body) };
}

/** A text that is only labelled so does not. */
function beginsAsBase64(body: Buffer): boolean {
  return /^\s{0,9}(?:[a-z0-9+/]{40}|[a-z0-9+/=]{4,76}\s{0,9}$)/i.test(body.toString('latin1', 0, 200));
}

/** Base64 in lines of 76, whatever its lines were. Decoders pass over other bytes (RFC 2045 section 6.8). */
function inLines(body: Buffer): Buffer {
  const text = body.toString('latin1').replace(/[\s\x80-\xff]+/g, '');
  return Buffer.from(text.replace(/.{76}(?=.)/g, '$&\r\n'), 'latin1');
}

/** The lines of a report are fields. */
function withEncodedWords(body: Buffer): Buffer {
  const text = body.toString(isUtf8(body) ? 'utf8' : 'latin1');
  const lines = text.split('\r\n').map((line) => {
    return isAscii(Buffer.from(line))
      ? line
      : encodeWords(line.slice(0, 998), 'Q', 52).replaceAll('?= =?', '?=\r\n =?');
  });
  return Buffer.from(lines.join('\r\n'));
}

interface NewLabels {
  encoding: string | null;
  type: string | null;
  charset: string | null;
  isDelivered: boolean;
}

function fieldEdits(raw: Buffer, part: MimeTreePart, labels: NewLabels): Edit[] {
  const { head } = part;
  const { encoding } = labels;
  const given = head.fields.filter(({ name }) => name === 'content-transfer-encoding');
  const keepsLabel = encoding === null || (given.length === 1 && given[0]!.value.toLowerCase() === encoding);
  const edits = head.fields.flatMap((field) => {
    const isReplaced = !keepsLabel && given.includes(field);
    return isReplaced ? [without(field)] : fieldEdit(raw, field, labels);
  });
  // A part without a label is 7bit (RFC 2045 section 6.1).
  const needsLabel = !keepsLabel && (encoding !== '7bit' || given.length > 0);
  const added = [
    ...missingType(part, labels),
    ...(needsLabel ? [`Content-Transfer-Encoding: ${encoding}`] : []),
  ];
  const bytes = Buffer.from(added.map((line) => `${line}\r\n`).join(''));
  return [...edits, ...strayEdits(raw, part), { start: head.end, end: head.end, bytes }];
}

const without = ({ start, end }: Pick<Edit, 'start' | 'end'>): Edit => ({
  start,
  end,
  bytes: Buffer.alloc(0),
});

/** None if the field stays as it is. */
function fieldEdit(raw: Buffer, field: Field, labels: NewLabels): Edit[] {
  const { name, value, start, end } = field;
  const bytes = raw.subarray(start, end);
  const isPlainText = isAscii(bytes) && !hasLongLine(bytes);
  const isRelabeled = name === 'content-type' && (labels.charset ?? labels.type) !== null;
  // The whole value as an encoded word, which no reader takes for a type.
  const isEncodedWord = /^content-(?:type|disposition)$/.test(name) && value.startsWith('=?');
  if (isPlainText && !isRelabeled && !isEncodedWord) return [];
  const text = asciiField(field, labels);
  if (text !== null) return [{ start, end, bytes: Buffer.from(`${text}\r\n`) }];
  return isAscii(bytes) ? [] : [without(field)];
}

/** The Content-Type of a part that has none, if it gets a type or a charset. */
function missingType({ head }: MimeTreePart, { type, charset }: NewLabels): string[] {
  const isMissing = (type ?? charset) !== null && fieldValue(head, 'content-type') === null;
  if (!isMissing) return [];
  return [`Content-Type: ${type ?? 'text/plain'}${charset === null ? '' : `; charset=${charset}`}`];
}

/** Lines of a header that belong to no field, which readers pass over. Only a part can have them (message-rules.ts). */
function strayEdits(raw: Buffer, { start, head }: MimeTreePart): Edit[] {
  const starts = [start, ...head.fields.map(({ end }) => end)];
  const ends = [...head.fields.map(({ start }) => start), head.end];
  return starts.flatMap((from, index) => {
    const to = ends[index]!;
    const bytes = raw.subarray(from, to);
    return isAscii(bytes) && !hasLongLine(bytes) ? [] : [without({ start: from, end: to })];
  });
}
