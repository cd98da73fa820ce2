/**
 * Counts the members and elements of JSON while its bytes arrive, so that a body with more of them than any valid one is
 * refused before it is parsed. Only what a parser would do much work for is counted: each comma and each opening bracket
 * outside of strings. Whether it is JSON at all is the parser's question.
 */
import { Refusal } from '../mail/refusal.ts';

/** A valid send has 1,000 attachments at most, of three members each. */
const maxMembers = 10_000;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const bracket = 0x5b;
const brace = 0x7b;

/** Longer strings are searched for their end by native code: attachments are most of a large body. */
const shortString = 64;

/** To be called with each chunk of a body. Throws a Refusal. */
export function createMemberLimit(): (chunk: Buffer) => void {
  let count = 0;
  let isString = false;
  /** The chunk before ended with a backslash. */
  let isEscaped = false;

  /** Each returns where to go on. */
  function outsideString(chunk: Buffer, start: number): number {
    for (let at = start; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (byte === quote) {
        isString = true;
        return at + 1;
      }
      if (byte === comma || byte === bracket || byte === brace) count += 1;
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
    if (count > maxMembers) throw tooMany();
  };
}

/** Where the next quote or backslash is, or the end. */
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

function tooMany(): Refusal {
  const max = maxMembers.toLocaleString('en-US');
  return new Refusal('BAD_REQUEST', `The body has more than ${max} members and elements in all.`);
}
