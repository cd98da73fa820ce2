/**
 * Transfer encodings (RFC 2045 section 6): content to lines that SMTP can carry, and back. Linear in time. Works on whole
 * buffers, because the content is in memory already.
 */
export interface Encoded {
  encoding: '7bit' | '8bit' | 'quoted-printable' | 'base64';
  bytes: Buffer;
}

/** RFC 2045 section 6.7 (5) and 6.8. */
const maxLineLength = 76;

/** Encodes a text with CRLF line ends, only if it needs encoding. `sample` is the text that the encoding is chosen by. */
export function encodeText(text: string, sample = text): Encoded {
  const isPlain = !hasLongLine(text) && !/[^\t\r\n\x20-\x7e]/.test(text);
  if (isPlain) return { encoding: '7bit', bytes: Buffer.from(text, 'latin1') };
  const bytes = Buffer.from(text);
  const isAscii = bytes.length === text.length;
  return isAscii || isMostlyLetters(sample)
    ? { encoding: 'quoted-printable', bytes: quotedPrintable(bytes) }
    : { encoding: 'base64', bytes: base64(bytes) };
}

function hasLongLine(text: string): boolean {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\r\n', at);
    if ((end < 0 ? text.length : end) - at > maxLineLength) return true;
    if (end < 0) return false;
    at = end + 2;
  }
  return false;
}

/**
 * Whether quoted-printable is better than base64 for a text that is not ASCII: it is if most letters are Latin, as for nodemailer.
 * Chinese would be twice as long, which weighs more than the 0.1 points that Rspamd gives to a text in base64.
 */
export function isMostlyLetters(text: string): boolean {
  let letters = 0;
  let others = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at) | 0x20;
    if (code >= 0x61 && code <= 0x7a) letters++;
    else if (code >= 0x80) others++;
  }
  return others < letters;
}

/** The text with CRLF line ends only. Receivers differ on whether a bare CR ends a line (RFC 5321 section 2.3.8). */
export function toCrlf(text: string): string {
  return text.replace(/\r\n?|\n/g, '\r\n');
}

const tab = 0x09;
const lf = 0x0a;
const cr = 0x0d;
const space = 0x20;
const equals = 0x3d;
const softBreak = Buffer.from('=\r\n');
const hexDigits = Buffer.from('0123456789ABCDEF');
/** 1: the byte may stay as it is. */
const literal = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(byte === tab || (byte >= space && byte <= 0x7e && byte !== equals)),
);

/**
 * Encodes UTF-8 with CRLF line ends, which stay; white space before them is encoded (RFC 2045 section 6.7 (3)). No character
 * is split over two lines. Copies literal bytes in runs, which takes a quarter of nodemailer's time.
 */
export function quotedPrintable(bytes: Buffer): Buffer {
  const { length } = bytes;
  const maxLength = maxLineLength - 1;
  let lines: Buffer = Buffer.allocUnsafe(length + (length >> 3) + 2 * maxLineLength);
  let to = 0;
  let column = 0;
  for (let at = 0; at < length; ) {
    if (lines.length - to < maxLineLength) lines = doubled(lines);
    const byte = bytes[at]!;
    const end = literalEnd(bytes, at, Math.min(at + maxLength - column, length));
    if (end > at) {
      column += end - at;
      // A loop, because a run is too short for a call of `copy`.
      while (at < end) lines[to++] = bytes[at++]!;
    } else if (byte === cr && bytes[at + 1] === lf) {
      lines[to++] = cr;
      lines[to++] = lf;
      column = 0;
      at += 2;
    } else if (column + escapedLength(byte) > maxLength) {
      to += softBreak.copy(lines, to);
      column = 0;
    } else {
      lines[to++] = equals;
      lines[to++] = hexDigits[byte >> 4]!;
      lines[to++] = hexDigits[byte & 0x0f]!;
      column += 3;
      at++;
    }
  }
  return lines.subarray(0, to);
}

/** Most texts grow little; allocating for the worst case would cost more than the encoding. */
function doubled(bytes: Buffer): Buffer {
  const more = Buffer.allocUnsafe(2 * bytes.length);
  bytes.copy(more);
  return more;
}

/** The end of the run of literal bytes that starts at `at`; at most `max`. */
function literalEnd(bytes: Buffer, at: number, max: number): number {
  let end = at;
  while (end < max && literal[bytes[end]!] === 1) end++;
  const isLineEnd = end === bytes.length || bytes[end] === cr;
  return isLineEnd && end > at && isWhite(bytes[end - 1]!) ? end - 1 : end;
}

function isWhite(byte: number): boolean {
  return byte === space || byte === tab;
}

/** The encoded length of the whole character that begins with this byte. */
function escapedLength(byte: number): number {
  if (byte < 0xc0) return 3;
  if (byte < 0xe0) return 6;
  return byte < 0xf0 ? 9 : 12;
}

/** In lines of 76. nodemailer's function works on strings and takes five times as long for ten megabytes. */
export function base64(bytes: Buffer): Buffer {
  const text = Buffer.from(bytes.toString('base64'), 'latin1');
  const breaks = Math.max(Math.ceil(text.length / maxLineLength) - 1, 0);
  const lines = Buffer.allocUnsafe(text.length + 2 * breaks);
  let to = 0;
  for (let from = 0; from < text.length; from += maxLineLength) {
    if (from > 0) {
      lines[to++] = cr;
      lines[to++] = lf;
    }
    to += text.copy(lines, to, from, from + maxLineLength);
  }
  return lines;
}

/** The decoded content; null if the encoding is not known here. */
export function decoded(body: Buffer, encoding: string): Buffer | null {
  switch (encoding) {
    case '':
    case '7bit':
    case '8bit':
      return body;
    case 'base64':
      return Buffer.from(body.toString('latin1'), 'base64');
    case 'quoted-printable':
      return fromQuotedPrintable(body);
    default:
      return null;
  }
}

/** RFC 2045 section 6.7: white space at a line's end was added in transit; an invalid escape stays as it is. */
function fromQuotedPrintable(body: Buffer): Buffer {
  const text = body
    .toString('latin1')
    .split('\r\n')
    .map(withoutTrailingSpace)
    .join('\r\n')
    .replaceAll('=\r\n', '');
  return unescaped(Buffer.from(text, 'latin1'));
}

/** In place. A function for each escape would take ten times as long. */
function unescaped(bytes: Buffer): Buffer {
  const first = bytes.indexOf(equals);
  if (first < 0) return bytes;
  let to = first;
  for (let at = first; at < bytes.length; at++) {
    const byte = bytes[at]!;
    const escaped = byte === equals ? 16 * digitOf(bytes[at + 1]) + digitOf(bytes[at + 2]) : -1;
    bytes[to++] = escaped < 0 ? byte : escaped;
    if (escaped >= 0) at += 2;
  }
  return bytes.subarray(0, to);
}

/** Far below zero if it is no hexadecimal digit. */
function digitOf(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte & 0xdf;
  return letter >= 0x41 && letter <= 0x46 ? letter - 0x37 : -1000;
}

/** A loop, because a search for `[ \t]+$` begins again at each of the characters. */
function withoutTrailingSpace(line: string): string {
  let end = line.length;
  while (end > 0 && isWhite(line.charCodeAt(end - 1))) end--;
  return line.slice(0, end);
}
