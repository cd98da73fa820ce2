/**
 * Finds the elements of a JSON array while its bytes arrive, so that they are counted before anything is parsed, and parsed one
 * by one: each element costs as much as a body of its own, and other requests run in between.
 *
 * It trusts no bracket: if every element is JSON by itself, and the array begins with `[` and ends with `]`, the whole is JSON.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { Refusal } from '#platform/values/refusal.ts';
import { type ElementsSeen, JsonCounter, type JsonLimits } from './json-counter.ts';
import { parseJson, sizeOf } from './request-body.ts';

const closingBracket = 0x5d;

export class JsonElements {
  /** To be called with each chunk; the limits hold for each element. */
  readonly check: (chunk: Buffer) => void;
  readonly #max: number;
  readonly #seen: ElementsSeen;

  /** `limits`: of the whole, but for the number of members, which is that of each element. */
  constructor(max: number, limits: JsonLimits) {
    this.#max = max;
    const commas: number[] = [];
    const onComma = () => {
      if (commas.length >= max) throw wrongNumber(max, `array of more than ${max}`);
    };
    this.#seen = { start: null, commas, end: null, isFilled: false, hasMore: false, onComma };
    const counter = new JsonCounter(limits, { elements: this.#seen });
    this.check = (chunk) => counter.check(chunk);
  }

  /** The ranges of the elements in the whole body, not parsed yet. */
  async split(bytes: Buffer): Promise<Buffer[]> {
    const { start, end, commas, isFilled, hasMore } = this.#seen;
    if (start === null) {
      // A body that is no JSON at all is a BAD_REQUEST; one so long is not worth the parser's time.
      const value = bytes.length <= maxOther ? await parseJson(bytes) : undefined;
      throw notArray(value === undefined ? 'another type' : typeof value);
    }
    if (end === null || bytes[end] !== closingBracket || hasMore)
      throw new Refusal('BAD_REQUEST', 'The body is not JSON: the array does not end with the body.');
    if (!isFilled) throw wrongNumber(this.#max, 'array of 0');
    const cuts = [start, ...commas, end];
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
