/**
 * The parts of a message that people see: its HTML, its text, and the files that are attached. Read from its MIME tree.
 *
 * Several parts can be the text, because Apple Mail puts files between them; a list puts its notice after. A text with a file name
 * is a file, unless the message begins with it or has it as an alternative: some programs name the body.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { charsetNamed } from './ascii/part-labels.ts';
import { hasUtf8, metaLabel } from './ascii/text-charset.ts';
import { fieldValue } from './head.ts';
import { type MimeTreePart, partsOf } from './mime-tree.ts';
import { decoded } from './transfer-encoding.ts';

export interface ShownParts {
  html: MimeTreePart[];
  /** Plain text, and HTML that has no alternative in plain text. */
  text: MimeTreePart[];
  attached: MimeTreePart[];
}

export function shownParts(tree: MimeTreePart): ShownParts {
  const leaves = [...partsOf(tree)].filter(
    ({ children, type }) => children.length === 0 && !type.startsWith('multipart/'),
  );
  const bodies = new Set(bodiesIn(tree, leaves[0]));
  const html = leaves.filter((part) => part.type === 'text/html' && bodies.has(part));
  // A multipart without parts, because its boundary is missing: text, as of an invalid type (RFC 2045 section 5.2).
  const text = leaves.length === 0 ? [tree] : textsIn(tree, bodies);
  const shown = new Set([...html, ...text]);
  const files = leaves.filter((part) => !shown.has(part));
  // An invitation is often there twice: among the alternatives, and as a file.
  const isTwice = files.some((part) => calendar.test(part.type) && isFile(part));
  const attached = files.filter((part) => !(isTwice && calendar.test(part.type) && !isFile(part)));
  return { html, text, attached };
}

const calendar = /^(?:text\/calendar|application\/ics)$/;

const isFile = ({ filename, isAttached }: MimeTreePart) => filename !== null || isAttached;

function bodiesIn(part: MimeTreePart, first: MimeTreePart | undefined, parentType = ''): MimeTreePart[] {
  if (part.children.length > 0) return part.children.flatMap((child) => bodiesIn(child, first, part.type));
  const isBody = part.filename === null || part === first || parentType === 'multipart/alternative';
  return /^text\/(?:plain|html)$/.test(part.type) && !part.isAttached && isBody ? [part] : [];
}

function textsIn(part: MimeTreePart, bodies: ReadonlySet<MimeTreePart>): MimeTreePart[] {
  if (part.children.length === 0) return bodies.has(part) ? [part] : [];
  const texts = part.children.map((child) => textsIn(child, bodies));
  if (part.type !== 'multipart/alternative') return texts.flat();
  const plain = texts.find((parts) => parts.some(({ type }) => type === 'text/plain'));
  return plain ?? texts.findLast((parts) => parts.length > 0) ?? [];
}

/** Without its angle brackets, which some programs leave out. */
export function contentIdOf({ head }: MimeTreePart): string | null {
  return (fieldValue(head, 'content-id') ?? '').replace(/^<|>$/g, '') || null;
}

/** Decoded, if the encoding is known here. */
export function bodyOf(raw: Buffer, { head, end, encoding }: MimeTreePart): Buffer {
  const body = raw.subarray(head.bodyStart, end);
  return decoded(body, encoding) ?? body;
}

/** The text of a part, of which at most `max` bytes are decoded. */
export function textOf(raw: Buffer, part: MimeTreePart, max = Number.POSITIVE_INFINITY): string {
  const body = bodyOf(raw, part);
  const shown = body.subarray(0, max);
  if (isAscii(body) && shown.includes(koreanDesignator)) return korean(shown);
  try {
    return new TextDecoder(charsetOf(part, body)).decode(shown);
  } catch {
    return shown.toString('latin1');
  }
}

/** RFC 1557: Korean in ASCII bytes, which no TextDecoder knows: those of EUC-KR without the high bit, between SO and SI. */
const koreanDesignator = '\x1b$)C';

function korean(bytes: Buffer): string {
  const read = Buffer.from(bytes.toString('latin1').replaceAll(koreanDesignator, ''), 'latin1');
  // In place, byte by byte, because strangers may write millions of shifts.
  let [length, high] = [0, 0];
  for (const byte of read) {
    if (byte === 0x0e || byte === 0x0f) high = byte === 0x0e ? 0x80 : 0;
    else read[length++] = byte > 0x20 && byte < 0x7f ? byte | high : byte;
  }
  return new TextDecoder('euc-kr').decode(read.subarray(0, length));
}

/** The label is not believed if the bytes beyond ASCII are UTF-8, which those of no other charset happen to be. */
function charsetOf({ charset, type }: MimeTreePart, body: Buffer): string {
  const isOrdinary = charset === null || /^(?:us-ascii|utf-8|iso-8859-\d+|windows-125\d)$/.test(charset);
  // RFC 1468: Japanese in ASCII bytes. The escape is a character of no text in these charsets.
  if (isAscii(body)) return isOrdinary && body.includes('\x1b$') ? 'iso-2022-jp' : (charset ?? 'utf-8');
  if (isUtf8(body)) return 'utf-8';
  const named = charset ?? (type === 'text/html' ? charsetNamed(metaLabel(body) ?? '') : null);
  return named === null || (named === 'utf-8' && !hasUtf8(body)) ? 'windows-1252' : named;
}
