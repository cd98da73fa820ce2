/**
 * Reads a message in place as the tree of its parts (RFC 2046), each with its range, type and encoding. The time is linear
 * in the message's size for each level; the number of levels is limited.
 */
import { decodeWords } from 'postal-mime';
import { charsetNamed, encodingNamed, mediaTypeNamed } from '#mail/compose/ascii/part-labels.ts';
import { parseHeaderValue } from '#platform/vendor/nodemailer.ts';
import { fieldValue, type Head, type HeadLimits, readHead } from './head.ts';

export interface MimeTreePart {
  start: number;
  end: number;
  head: Head;
  /** In lower case; text/plain if the part has no type, a message in a digest (RFC 2046 section 5.1.5). */
  type: string;
  /** Its registered name in lower case; null if the part names none that is known. */
  charset: string | null;
  /** As written. */
  charsetLabel: string | null;
  /** Content-Transfer-Encoding in lower case; empty if there is none. */
  encoding: string;
  isAttached: boolean;
  isInline: boolean;
  filename: string | null;
  children: MimeTreePart[];
}

const maxDepth = 10;
const maxParts = 1000;
/** In one multipart, including lines that only begin like a delimiter. */
const maxDelimiters = 10_000;
/** RFC 2046 section 5.1.1. The time of a search grows with the pattern if that has more than 250 bytes. */
const maxBoundary = 70;
/** In all parts together. */
const maxFields = 10_000;
/** Only this much of a structured value is read. */
const maxValueLength = 4096;

const dash = 0x2d;

/** Null if the message is nested too deeply, has too many parts, or has too large a header. */
export function readTree(raw: Buffer, limits?: HeadLimits): MimeTreePart | null {
  let partsLeft = maxParts;
  let fieldsLeft = maxFields;

  function read(start: number, end: number, depth: number, parentType = ''): MimeTreePart | null {
    partsLeft -= 1;
    if (partsLeft < 0 || depth > maxDepth) return null;
    const head = readHead(raw, start, end, limits);
    fieldsLeft -= head.fields.length;
    if (head.isTooLarge || fieldsLeft < 0) return null;
    const { boundary, ...part } = describe(head, parentType);
    const children: MimeTreePart[] = [];
    if (boundary !== null) {
      const ranges = rangesOf(raw, head.bodyStart, end, boundary);
      if (!ranges) return null;
      for (const [from, to] of ranges) {
        const child = read(from, to, depth + 1, part.type);
        if (!child) return null;
        children.push(child);
      }
    }
    return { start, end, head, ...part, children };
  }

  return read(0, raw.length, 0);
}

/** The part and all parts inside it, each before its children. */
export function* partsOf(part: MimeTreePart): Generator<MimeTreePart> {
  yield part;
  for (const child of part.children) yield* partsOf(child);
}

type PartDescription = Omit<MimeTreePart, 'start' | 'end' | 'head' | 'children'> & {
  boundary: string | null;
};

function describe(head: Head, parentType: string): PartDescription {
  const usual = parentType === 'multipart/digest' ? 'message/rfc822' : 'text/plain';
  const content = structured(head, 'content-type');
  const disposition = structured(head, 'content-disposition');
  const type = mediaTypeNamed(content.value) ?? (content.value.toLowerCase() || usual);
  const charsetLabel = content.params.charset ?? null;
  const boundary = content.params.boundary ?? '';
  const isBoundary = /^[\x20-\x7e]+$/.test(boundary);
  const shown = disposition.value.toLowerCase();
  const filename = disposition.params.filename ?? content.params.name ?? null;
  return {
    type,
    charset: charsetLabel === null ? null : charsetNamed(charsetLabel),
    charsetLabel,
    encoding: encodingNamed(fieldValue(head, 'content-transfer-encoding') ?? ''),
    isAttached: shown === 'attachment',
    isInline: shown === 'inline',
    filename: filename === null ? null : decodeWords(filename),
    boundary: type.startsWith('multipart/') && isBoundary ? boundary : null,
  };
}

function structured(head: Head, name: string): { value: string; params: Record<string, string | undefined> } {
  const value = (fieldValue(head, name) ?? '').slice(0, maxValueLength);
  // Some programs encode whatever they give; some name no charset of a file name (RFC 2231 section 4), or leave its quotes out.
  const named = withoutPlainName(value)
    .replace(/(name\*(?:0\*)?\s?=\s?"?)'/gi, "$1utf-8'")
    .replace(/(name\*\s?=\s?"?)(?![^;']{0,40}')/gi, "$1utf-8''");
  return parseHeaderValue(named.startsWith('=?') ? decodeWords(named) : named);
}

/** Beside an extended name, a plain one is for programs that know no other (RFC 6266 section 4.3). */
function withoutPlainName(value: string): string {
  if (!/;\s*(?:file)?name\*(?:0\*?)?\s?=/i.test(value)) return value;
  return value.replace(/;\s*(?:file)?name\s?=\s?(?:"(?:[^"\\]|\\.)*"|[^;"]*)/i, '');
}

/**
 * The ranges between the delimiter lines, without the CRLF before each, which belongs to the delimiter (section 5.1.1).
 * Null if there are too many, including lines that only begin like a delimiter, which a hostile body may be full of.
 */
function rangesOf(
  raw: Buffer,
  start: number,
  end: number,
  boundary: string,
): [from: number, to: number][] | null {
  const ranges: [number, number][] = [];
  let open: number | null = null;
  let seen = 0;
  for (const { at, next, isLast } of delimitersIn(raw.subarray(0, end), start, boundary)) {
    if (++seen > maxDelimiters) return null;
    if (next === null) continue;
    if (open !== null) ranges.push([open, Math.max(at, open)]);
    if (isLast) return ranges;
    open = next;
  }
  if (open !== null) ranges.push([open, end]);
  return ranges;
}

interface Delimiter {
  /** The position of the CRLF before it. */
  at: number;
  /** The position after its line; null for a line that only begins like one. */
  next: number | null;
  isLast: boolean;
}

function* delimitersIn(body: Buffer, start: number, boundary: string): Generator<Delimiter> {
  const beginning = Buffer.from(`\r\n--${boundary.slice(0, maxBoundary)}`, 'latin1');
  const rest = Buffer.from(boundary.slice(maxBoundary), 'latin1');
  // The search starts at the CRLF that ends the header, because the first delimiter may follow it directly.
  let at = body.indexOf(beginning, start - 2);
  while (at >= 0) {
    const searched = at + beginning.length;
    const end = searched + rest.length;
    const isLast = body[end] === dash && body[end + 1] === dash;
    const isWhole = body.subarray(searched, end).equals(rest);
    const next = isWhole ? lineEnd(body, end + (isLast ? 2 : 0)) : null;
    yield { at, next, isLast };
    // The CRLF after one delimiter may also be the one before the next.
    at = body.indexOf(beginning, next === null ? searched : next - 2);
  }
}

/** The position after the line's end; null if anything but white space comes before it. */
function lineEnd(body: Buffer, from: number): number | null {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x09) at += 1;
  if (at >= body.length) return body.length;
  return body[at] === 0x0d && body[at + 1] === 0x0a ? at + 2 : null;
}
