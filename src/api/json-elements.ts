/**
 * Finds the elements of a JSON array while its bytes arrive, so that they are counted before anything is parsed, and parsed one
 * by one: each element costs as much as a body of its own, and other requests run in between.
 *
 * It trusts no bracket: if every element is JSON by itself, and the array begins with `[` and ends with `]`, the whole is JSON.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { Refusal } from '../mail/refusal.ts';
import { createMemberLimit } from './json-members.ts';
import { parseJson, sizeOf } from './request-body.ts';

const code = (character: string) => character.charCodeAt(0);
const comma = code(',');
const opening = [code('['), code('{')];
const closing = [code(']'), code('}')];
const space = [0x20, 0x09, 0x0a, 0x0d];

export class JsonElements {
  /** To be called with each chunk; the limit of members holds for each element. */
  readonly check: (chunk: Buffer) => void;
  readonly #max: number;
  readonly #commas: number[] = [];
  #first: number | null = null;
  #depth = 0;
  /** The position of the bracket that closes the array. */
  #end: number | null = null;

  constructor(max: number) {
    this.#max = max;
    this.check = createMemberLimit({ structure: (byte, at) => this.#see(byte, at) });
  }

  #see(byte: number, at: number): boolean {
    if (space.includes(byte)) return false;
    this.#first ??= byte;
    if (this.#first !== opening[0]) return false;
    if (opening.includes(byte)) this.#depth += 1;
    if (closing.includes(byte)) {
      this.#depth -= 1;
      if (this.#depth === 0) this.#end ??= at;
    }
    if (byte !== comma || this.#depth !== 1) return false;
    this.#commas.push(at);
    if (this.#commas.length >= this.#max) throw wrongNumber(this.#max, `array of more than ${this.#max}`);
    return true;
  }

  /** The ranges of the elements in the whole body, not parsed yet. */
  async split(bytes: Buffer): Promise<Buffer[]> {
    const start = bytes.findIndex((byte) => !space.includes(byte));
    if (bytes[start] !== opening[0]) {
      // A body that is no JSON at all is a BAD_REQUEST; one so long is not worth the parser's time.
      const value = bytes.length <= maxOther ? await parseJson(bytes) : undefined;
      throw notArray(value === undefined ? 'another type' : typeof value);
    }
    const end = this.#end;
    const isWhole = end !== null && bytes[end] === closing[0];
    if (!isWhole || bytes.subarray(end + 1).some((byte) => !space.includes(byte)))
      throw new Refusal('BAD_REQUEST', 'The body is not JSON: the array does not end with the body.');
    const inside = bytes.subarray(start + 1, end);
    if (this.#commas.length === 0 && inside.every((byte) => space.includes(byte)))
      throw wrongNumber(this.#max, 'array of 0');
    const cuts = [start, ...this.#commas, end];
    return cuts.slice(1).map((cut, index) => bytes.subarray(cuts[index]! + 1, cut));
  }
}

const maxOther = 1024 * 1024;

/** Parses one after the other. A Refusal stands for an element that is too large; one that is not JSON throws. */
export async function* parseElements(elements: Buffer[], largest: number): AsyncGenerator<unknown> {
  for (const [index, bytes] of elements.entries()) {
    await yieldToOthers();
    if (bytes.length > largest) {
      yield new Refusal('BAD_REQUEST', `The element is larger than ${sizeOf(largest)}.`);
      continue;
    }
    yield await parseJson(bytes).catch((refusal: Refusal) => {
      throw new Refusal(refusal.code, `Element ${index}: ${refusal.message}`);
    });
  }
}

function wrongNumber(max: number, received: string): Refusal {
  const expected = `1 to ${max} elements`;
  const kind = received === 'array of 0' ? 'too_small' : 'too_big';
  return invalid({ code: kind, expected, received, path: [], message: `body: must have ${expected}` });
}

function notArray(received: string): Refusal {
  const message = 'body: must be an array';
  return invalid({ code: 'invalid_type', expected: 'array', received, path: [], message });
}

function invalid(issue: Refusal['issues'][number]): Refusal {
  return new Refusal('VALIDATION_ERROR', 'The request is not valid.', { issues: [issue] });
}
