/**
 * Counts the members and elements of JSON while its bytes arrive, so that a body with more of them than any valid request
 * is refused before it is parsed. It counts each comma and each opening bracket outside strings, because those cost a
 * parser work. It does not check whether the body is JSON; the parser does.
 */
import { Refusal } from '../mail/refusal.ts';

/** A valid send has at most 1,000 attachments with five members each. */
const membersOfSend = 10_000;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const bracket = 0x5b;
const brace = 0x7b;

/** The end of a longer string is searched by native code, because attachments are most of a large body. */
const shortString = 64;

/** Sees each byte outside strings, with its position in the body. True: the count starts again after it. */
type Structure = (byte: number, at: number) => boolean;

/** Returns a function to call with each chunk of a body. It throws a Refusal when there are too many members. */
export function createMemberLimit({
  maxMembers = membersOfSend,
  structure = null,
  takesBytes = false,
}: {
  maxMembers?: number;
  structure?: Structure | null;
  /** Files can come as lists of their bytes, which cost far less than other elements. */
  takesBytes?: boolean;
} = {}): (chunk: Buffer) => void {
  let count = 0;
  /** Bytes of earlier chunks. */
  let before = 0;
  let isString = false;
  /** The previous chunk ended with a backslash. */
  let isEscaped = false;

  /** This function and the next return the position to continue at. */
  function outsideString(chunk: Buffer, start: number): number {
    for (let at = start; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (byte === quote) {
        isString = true;
        return at + 1;
      }
      if (byte === comma || byte === bracket || byte === brace)
        count += takesBytes && byte === comma && endsByte(chunk, at) ? costOfByte : 1;
      if (structure?.(byte!, before + at)) count = 0;
    }
    return chunk.length;
  }

  function insideString(chunk: Buffer, start: number, far: (from: number) => number): number {
    let at = start;
    if (isEscaped) at += 1;
    isEscaped = false;
    for (const near = Math.min(at + shortString, chunk.length); at < near; at += 1) {
      const byte = chunk[at];
      if (byte === quote) {
        isString = false;
        return at + 1;
      }
      if (byte !== backslash) continue;
      at += 1;
      isEscaped = at === chunk.length;
    }
    return far(at);
  }

  return (chunk) => {
    const far = nextMark(chunk);
    for (let at = 0; at < chunk.length && count <= maxMembers; )
      at = isString ? insideString(chunk, at, far) : outsideString(chunk, at);
    if (count > maxMembers) throw tooMany(maxMembers);
    before += chunk.length;
  };
}

/** With 50,000 members, three million bytes. */
const costOfByte = 1 / 64;
const space = 0x20;

/** Whether what is before this comma is an element such as `255`. At the beginning of a chunk it can be any other element. */
function endsByte(chunk: Buffer, comma: number): boolean {
  let start = comma;
  while (comma - start < 3 && isDigit(chunk[start - 1])) start -= 1;
  if (start === comma) return false;
  const before = chunk[start - 1] === space ? chunk[start - 2] : chunk[start - 1];
  return before === chunk[comma] || before === bracket;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** Finds the next quote or backslash, or the end of the chunk. */
function nextMark(chunk: Buffer): (from: number) => number {
  const [quotes, backslashes] = [quote, backslash].map((byte) => {
    let known = -1;
    return (from: number) => {
      if (known >= from) return known;
      const found = chunk.indexOf(byte, from);
      known = found === -1 ? chunk.length : found;
      return known;
    };
  }) as [Search, Search];
  return (from) => Math.min(quotes(from), backslashes(from));
}

type Search = (from: number) => number;

function tooMany(maxMembers: number): Refusal {
  const max = maxMembers.toLocaleString('en-US');
  return new Refusal('BAD_REQUEST', `The body has more than ${max} members and elements in total.`);
}
