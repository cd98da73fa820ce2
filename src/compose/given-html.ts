/**
 * Tracking in a message that was given: its HTML parts, decoded, altered and encoded as they were. A part stays as it
 * is where altering it would break it: within a signature or encryption (RFC 1847), in an attachment, in a character
 * set or an encoding that is not read here.
 */
import { isUtf8 } from 'node:buffer';
import type { Field } from './head.ts';
import type { Tracking } from './message.ts';
import { type Tracker, trackable } from './tracking.ts';
import { base64, quotedPrintable } from './transfer.ts';
import { type Part, readTree } from './tree.ts';

/** A piece of the message, and what takes its place. */
interface Piece {
  start: number;
  end: number;
  bytes(tracker: Tracker): Buffer;
}

/** Null where nothing is to be tracked: then the message is the same for all. */
export function trackedParts(raw: Buffer, tracking: Tracking): ((tracker: Tracker) => Buffer) | null {
  if (!tracking.opens && !tracking.clicks) return null;
  const tree = readTree(raw);
  const pieces: Piece[] = [];
  for (const part of tree ? htmlParts(tree) : []) {
    // One pixel tells of all the mail.
    const piece = pieceOf(raw, part, { ...tracking, opens: tracking.opens && pieces.length === 0 });
    if (piece) pieces.push(piece);
  }
  return pieces.length === 0 ? null : (tracker) => splice(raw, pieces, tracker);
}

function htmlParts(part: Part): Part[] {
  if (/^multipart\/(signed|encrypted)$/.test(part.type)) return [];
  if (part.children.length > 0) return part.children.flatMap(htmlParts);
  return part.type === 'text/html' && !part.isAttached ? [part] : [];
}

function pieceOf(raw: Buffer, part: Part, tracking: Tracking): Piece | null {
  const body = decoded(raw.subarray(part.head.bodyStart, part.end), part.encoding);
  const reading = body && readingOf(body, part.charset);
  if (!reading) return null;
  const tracked = trackable(body.toString(reading), tracking, reading === 'latin1' ? isAscii : undefined);
  if (!tracked) return null;
  const head = raw.subarray(part.start, part.head.bodyStart);
  return {
    start: part.start,
    end: part.end,
    bytes: (tracker) => rewritten(head, part, Buffer.from(tracked(tracker), reading)),
  };
}

/** A link is a URL in UTF-8; of another character set, no more than ASCII is known here. */
function isAscii(target: string): boolean {
  return /^[\x20-\x7e]*$/.test(target);
}

/** Character sets in which the octets of ASCII stand for themselves alone; read as Latin-1, they come out unchanged. */
const singleOctet = /^(iso-8859-\d{1,2}|windows-125\d|koi8-[ru]|latin1)$/;

function readingOf(body: Buffer, charset: string): 'utf8' | 'latin1' | null {
  if (/^(utf-?8|us-ascii|ascii)$/.test(charset)) return isUtf8(body) ? 'utf8' : 'latin1';
  return singleOctet.test(charset) ? 'latin1' : null;
}

function decoded(body: Buffer, encoding: string): Buffer | null {
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

/** RFC 2045 section 6.7: white space at a line's end was added on the way; what is no code stays as it is. */
function fromQuotedPrintable(body: Buffer): Buffer {
  const text = body
    .toString('latin1')
    .split('\r\n')
    .map((line) => line.replace(/[ \t]+$/, ''))
    .join('\r\n')
    .replaceAll('=\r\n', '')
    .replace(/=([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
  return Buffer.from(text, 'latin1');
}

function rewritten(head: Buffer, part: Part, body: Buffer): Buffer {
  const encoding = encodingFor(part.encoding, body);
  const fields = encoding === part.encoding ? head : withEncoding(head, part, encoding);
  return Buffer.concat([fields, encode(body, encoding)]);
}

function encode(body: Buffer, encoding: string): Buffer {
  if (encoding === 'base64') return base64(body);
  return encoding === 'quoted-printable' ? quotedPrintable(body) : body;
}

/** The one that it had, where that can still carry it. */
function encodingFor(before: string, body: Buffer): string {
  const text = body.toString('latin1');
  if (before === 'base64') return before;
  if (/\r(?!\n)|(?<!\r)\n/.test(text)) return 'base64';
  const isPlain = before !== 'quoted-printable' && text.split('\r\n').every((line) => line.length <= 998);
  return isPlain ? before : 'quoted-printable';
}

function withEncoding(head: Buffer, part: Part, encoding: string): Buffer {
  const isOld = ({ name }: Field) => name === 'content-transfer-encoding';
  const kept = part.head.fields
    .filter((field) => !isOld(field))
    .map(({ start, end }) => head.subarray(start - part.start, end - part.start));
  return Buffer.concat([...kept, Buffer.from(`Content-Transfer-Encoding: ${encoding}\r\n\r\n`)]);
}

function splice(raw: Buffer, pieces: Piece[], tracker: Tracker): Buffer {
  const parts: Buffer[] = [];
  let done = 0;
  for (const { start, end, bytes } of pieces) {
    parts.push(raw.subarray(done, start), bytes(tracker));
    done = end;
  }
  parts.push(raw.subarray(done));
  const whole = Buffer.concat(parts);
  return whole.at(-1) === 0x0a ? whole : Buffer.concat([whole, Buffer.from('\r\n')]);
}
