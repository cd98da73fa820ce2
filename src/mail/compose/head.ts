/**
 * Reads the header of a message or a part in place (RFC 5322 section 2.2): each field with its position, so that a field can
 * be removed without changing a byte of the others. Lines end with CRLF.
 */
import { isUtf8 } from 'node:buffer';
import { charsetNamed } from './ascii/part-labels.ts';

export interface Field {
  /** In lower case. */
  name: string;
  /** As written. */
  label: string;
  /** Unfolded and trimmed; read as UTF-8 if it is valid, otherwise in the charset of Content-Type, without one as windows-1252. */
  value: string;
  start: number;
  /** After its last CRLF. */
  end: number;
}

export interface Head {
  fields: Field[];
  /** The position of the empty line, or the end of the message; if it is too large, that of the first field that was not read. */
  end: number;
  bodyStart: number;
  /** The first line that belongs to no field; null if there is none. */
  stray: string | null;
  /** The header is longer than the limits below; the rest was not read. */
  isTooLarge: boolean;
}

/** Postfix's limit. The limits also bound the time of signing, which grows with the fields. */
export const maxHeadLength = 100 * 1024;
export const maxFields = 500;

const colon = 0x3a;
/** As browsers and mail programs read Latin-1: its control characters 0x80 to 0x9F are never meant. */
const windows1252 = new TextDecoder('windows-1252');

export interface HeadLimits {
  length: number;
  fields: number;
}

const given: HeadLimits = { length: maxHeadLength, fields: maxFields };
/** Limits for a message that we made from a header within the limits: encoded text is longer, and a few fields were added. */
export const composed: HeadLimits = { length: 16 * maxHeadLength, fields: maxFields + 20 };

/** Nothing beyond the limits is read or decoded, even if the message is a header only. */
export function readHead(raw: Buffer, start = 0, end = raw.length, limits = given): Head {
  const fields: Field[] = [];
  let stray: string | null = null;
  let at = start;
  const headEndingAt = (end: number, bodyStart: number, isTooLarge = false): Head => ({
    fields: withValues(raw, fields),
    end,
    bodyStart,
    stray,
    isTooLarge,
  });
  while (at < end) {
    const next = lineEnd(raw, at, end);
    if (isEmptyLine(raw, at, next)) return headEndingAt(at, next);
    const last = fields.at(-1);
    if (next - start > limits.length) {
      const unread = isBlank(raw[at]) ? (fields.pop()?.start ?? at) : at;
      return headEndingAt(unread, unread, true);
    }
    const name = nameOf(raw, at, next);
    if (name && fields.length >= limits.fields) return headEndingAt(at, at, true);
    if (name) fields.push({ name: name.toLowerCase(), label: name, value: '', start: at, end: next });
    else if (last && last.end === at && isContinuation(raw, at, next)) last.end = next;
    else stray ??= raw.toString('latin1', at, Math.min(next, at + 80)).trim();
    at = next;
  }
  return headEndingAt(end, end);
}

export function fieldValue(head: Head, name: string): string | null {
  return head.fields.find((field) => field.name === name)?.value ?? null;
}

function lineEnd(raw: Buffer, at: number, end: number): number {
  const found = raw.indexOf('\r\n', at);
  return found < 0 || found >= end ? end : found + 2;
}

function isEmptyLine(raw: Buffer, at: number, next: number): boolean {
  return next === at + 2 && raw[at] === 0x0d;
}

/** RFC 5322 section 3.6.8. A space before the colon is obsolete, and readers differ on it: such a line is no field here. */
function nameOf(raw: Buffer, at: number, next: number): string | null {
  const line = raw.subarray(at, next);
  const name = line.toString('latin1', 0, Math.max(line.indexOf(colon), 0));
  return /^[\x21-\x7e]+$/.test(name) ? name : null;
}

/** Not a line of white space only: some readers take it for the end of the header (RFC 5322 section 3.2.2 forbids it). */
function isContinuation(raw: Buffer, at: number, next: number): boolean {
  return isBlank(raw[at]) && /[^ \t\r\n]/.test(raw.toString('latin1', at, next));
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09;
}

function withValues(raw: Buffer, fields: Field[]): Field[] {
  let decoder: typeof windows1252 | null = null;
  return fields.map((field) => {
    const bytes = raw.subarray(field.start + field.label.length + 1, field.end);
    const isPlain = isUtf8(bytes);
    if (!isPlain) decoder ??= decoderFor(raw, fields);
    const text = isPlain ? bytes.toString() : decoder!.decode(bytes);
    return { ...field, value: text.replaceAll('\r\n', '').trim() };
  });
}

/** How far into the message its first charset is looked for; 1000 parts may ask for it. */
const maxSearched = 16 * 1024;

/** Programs that write a text in another charset write its header in the same; a multipart names it only in its parts. */
function decoderFor(raw: Buffer, fields: Field[]): typeof windows1252 {
  const type = fields.find(({ name }) => name === 'content-type');
  const own = type
    ? charsetIn(raw.toString('latin1', type.start, Math.min(type.end, type.start + 1000)))
    : null;
  const charset = charsetNamed(own ?? charsetIn(raw.toString('latin1', 0, maxSearched)) ?? '');
  const isOther =
    charset !== null &&
    /^(?:windows-125\d|iso-8859-(?:[2-9]|1\d)|koi8-[ru]|gb.*|big5|euc-.*|shift_jis)$/.test(charset);
  try {
    return isOther ? new TextDecoder(charset) : windows1252;
  } catch {
    return windows1252;
  }
}

function charsetIn(text: string): string | null {
  return /charset\s{0,9}=([^;\r\n]{1,80})/i.exec(text)?.[1] ?? null;
}
