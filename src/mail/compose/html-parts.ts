/**
 * Edits the HTML parts of a whole message: decodes them, edits them, and encodes them as they were. Every other byte stays.
 * A part is not edited if that would break it: inside a signature or encryption (RFC 1847), in an attachment, or in a
 * character set or encoding that this file cannot read.
 */
import { isUtf8 } from 'node:buffer';
import { splice } from '#platform/base/splice.ts';
import type { Field } from './head.ts';
import { type MimeTreePart, readTree } from './mime-tree.ts';
import { base64, decoded, quotedPrintable } from './transfer-encoding.ts';

/** A range of the message, and the bytes that replace it. */
interface Replacement<Input> {
  start: number;
  end: number;
  bytes(input: Input): Buffer;
}

/** How a part's bytes are read as text. latin1 stands for any ASCII-compatible set, because it keeps every byte. */
type HtmlCharset = 'utf8' | 'latin1';

interface HtmlPart {
  html: string;
  charset: HtmlCharset;
  /** Not an alternative before the last one with HTML, which readers show (RFC 2046 section 5.1.4). */
  isShown: boolean;
}

/** Returns a function that makes the part's new HTML from a later input, or null to leave the part as it is. */
type EditPart<Input> = (part: HtmlPart) => ((input: Input) => string) | null;

/** Null if no part is edited. */
export function editedParts<Input>(raw: Buffer, edit: EditPart<Input>): ((input: Input) => Buffer) | null {
  const tree = readTree(raw);
  if (!tree) return null;
  const shown = new Set(shownHtmlParts(tree));
  const replacements = htmlParts(tree).flatMap(
    (part) => replacementOf(raw, part, (read) => edit({ ...read, isShown: shown.has(part) })) ?? [],
  );
  if (replacements.length === 0) return null;
  return (input) => {
    const edits = replacements.map(({ start, end, bytes }) => ({ start, end, bytes: bytes(input) }));
    const whole = splice(raw, edits);
    return whole.at(-1) === 0x0a ? whole : Buffer.concat([whole, Buffer.from('\r\n')]);
  };
}

/** The HTML parts that readers show as the mail's body. */
function htmlParts(part: MimeTreePart): MimeTreePart[] {
  if (/^multipart\/(signed|encrypted)$/.test(part.type)) return [];
  if (part.children.length > 0) return part.children.flatMap(htmlParts);
  return part.type === 'text/html' && !part.isAttached ? [part] : [];
}

function shownHtmlParts(part: MimeTreePart): MimeTreePart[] {
  const found = part.children.map(shownHtmlParts).filter((parts) => parts.length > 0);
  if (found.length === 0) return htmlParts(part);
  return part.type === 'multipart/alternative' ? found.at(-1)! : found.flat();
}

function replacementOf<Input>(
  raw: Buffer,
  part: MimeTreePart,
  edit: (part: Omit<HtmlPart, 'isShown'>) => ((input: Input) => string) | null,
): Replacement<Input> | null {
  const body = decoded(raw.subarray(part.head.bodyStart, part.end), part.encoding);
  const charset = body && charsetOf(body, part.charset);
  if (!charset) return null;
  const edited = edit({ html: body.toString(charset), charset });
  if (!edited) return null;
  const head = raw.subarray(part.start, part.head.bodyStart);
  return {
    start: part.start,
    end: part.end,
    bytes: (input) => reencoded(head, part, Buffer.from(edited(input), charset)),
  };
}

/** Character sets in which ASCII bytes only stand for ASCII. Read and written as Latin-1, they stay unchanged. */
const asciiCompatible = /^(iso-8859-\d{1,2}|windows-125\d|koi8-[ru])$/;

function charsetOf(body: Buffer, charset: string | null): 'utf8' | 'latin1' | null {
  if (charset === null || charset === 'utf-8' || charset === 'us-ascii')
    return isUtf8(body) ? 'utf8' : 'latin1';
  return asciiCompatible.test(charset) ? 'latin1' : null;
}

function reencoded(head: Buffer, part: MimeTreePart, body: Buffer): Buffer {
  const encoding = encodingFor(part.encoding, body);
  const fields = encoding === part.encoding ? head : withEncoding(head, part, encoding);
  return Buffer.concat([fields, encode(body, encoding)]);
}

function encode(body: Buffer, encoding: string): Buffer {
  if (encoding === 'base64') return base64(body);
  return encoding === 'quoted-printable' ? quotedPrintable(body) : body;
}

/** The part's own encoding if it can still carry the body. */
function encodingFor(before: string, body: Buffer): string {
  const text = body.toString('latin1');
  if (before === 'base64') return before;
  if (/\r(?!\n)|(?<!\r)\n/.test(text)) return 'base64';
  const isPlain = before !== 'quoted-printable' && text.split('\r\n').every((line) => line.length <= 998);
  return isPlain ? before : 'quoted-printable';
}

function withEncoding(head: Buffer, part: MimeTreePart, encoding: string): Buffer {
  const isOld = ({ name }: Field) => name === 'content-transfer-encoding';
  const kept = part.head.fields
    .filter((field) => !isOld(field))
    .map(({ start, end }) => head.subarray(start - part.start, end - part.start));
  return Buffer.concat([...kept, Buffer.from(`Content-Transfer-Encoding: ${encoding}\r\n\r\n`)]);
}
