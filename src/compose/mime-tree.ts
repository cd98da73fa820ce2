/**
 * A message as the tree of its parts (RFC 2046), read in place: where each begins and ends, and what it says it is.
 * Linear in the message's size for each level, of which there are few.
 */

import { decodeWords } from 'postal-mime';
import { parseHeaderValue } from '../vendor/nodemailer.ts';
import { fieldValue, type Head, readHead } from './head.ts';

export interface MimeTreePart {
  start: number;
  end: number;
  head: Head;
  /** In lower case; text/plain where nothing is said. */
  type: string;
  charset: string;
  /** Content-Transfer-Encoding in lower case. */
  encoding: string;
  isAttached: boolean;
  filename: string | null;
  children: MimeTreePart[];
}

const maxDepth = 10;
const maxParts = 1000;
/** Of one multipart, with lines that only begin like one. */
const maxDelimiters = 10_000;
/** Of all parts together. */
const maxFields = 10_000;
/** What is read of a structured value. */
const maxValueLength = 4096;

const dash = 0x2d;

/** Null: nested too deeply, cut into too many parts, or with too large a header. */
export function readTree(raw: Buffer): MimeTreePart | null {
  let partsLeft = maxParts;
  let fieldsLeft = maxFields;

  function read(start: number, end: number, depth: number): MimeTreePart | null {
    partsLeft -= 1;
    if (partsLeft < 0 || depth > maxDepth) return null;
    const head = readHead(raw, start, end);
    fieldsLeft -= head.fields.length;
    if (head.isTooLarge || fieldsLeft < 0) return null;
    const { boundary, ...part } = described(head);
    const children: MimeTreePart[] = [];
    if (boundary !== null) {
      const ranges = rangesOf(raw, head.bodyStart, end, boundary);
      if (!ranges) return null;
      for (const [from, to] of ranges) {
        const child = read(from, to, depth + 1);
        if (!child) return null;
        children.push(child);
      }
    }
    return { start, end, head, ...part, children };
  }

  return read(0, raw.length, 0);
}

/** The part and all within it, each before its own. */
export function* partsOf(part: MimeTreePart): Generator<MimeTreePart> {
  yield part;
  for (const child of part.children) yield* partsOf(child);
}

type Described = Omit<MimeTreePart, 'start' | 'end' | 'head' | 'children'> & { boundary: string | null };

function described(head: Head): Described {
  const content = structured(head, 'content-type');
  const disposition = structured(head, 'content-disposition');
  const type = content.value.toLowerCase() || 'text/plain';
  const filename = disposition.params.filename ?? content.params.name ?? null;
  return {
    type,
    charset: (content.params.charset ?? 'us-ascii').toLowerCase(),
    encoding: (fieldValue(head, 'content-transfer-encoding') ?? '').toLowerCase(),
    isAttached: disposition.value.toLowerCase() === 'attachment',
    filename: filename === null ? null : decodeWords(filename),
    boundary: (type.startsWith('multipart/') && content.params.boundary) || null,
  };
}

function structured(head: Head, name: string): { value: string; params: Record<string, string | undefined> } {
  return parseHeaderValue((fieldValue(head, name) ?? '').slice(0, maxValueLength));
}

/**
 * What lies between the delimiter lines; without the CRLF before each, which is the delimiter's (section 5.1.1). Null
 * where there are too many, or too many lines that are nearly delimiters, of which a hostile body is full.
 */
function rangesOf(
  raw: Buffer,
  start: number,
  end: number,
  boundary: string,
): [from: number, to: number][] | null {
  // The CRLF before the body is its header's; the first delimiter may stand behind it.
  const body = raw.subarray(0, end);
  const mark = Buffer.from(`\r\n--${boundary}`, 'latin1');
  const ranges: [number, number][] = [];
  let open: number | null = null;
  let at = body.indexOf(mark, start - 2);
  for (let seen = 0; at >= 0; seen++) {
    if (seen > maxDelimiters) return null;
    const behind = at + mark.length;
    const isLast = body[behind] === dash && body[behind + 1] === dash;
    const next = lineEnd(body, behind + (isLast ? 2 : 0));
    if (next !== null) {
      if (open !== null) ranges.push([open, Math.max(at, open)]);
      if (isLast) return ranges;
      open = next;
    }
    // One delimiter's CRLF may be the next one's too.
    at = body.indexOf(mark, next === null ? behind : next - 2);
  }
  if (open !== null) ranges.push([open, end]);
  return ranges;
}

/** Behind the line's end, where nothing but white space comes before it. */
function lineEnd(body: Buffer, from: number): number | null {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x09) at += 1;
  if (at >= body.length) return body.length;
  return body[at] === 0x0d && body[at + 1] === 0x0a ? at + 2 : null;
}
