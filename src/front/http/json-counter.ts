/**
 * Counts what JSON has while its bytes arrive, and refuses a body that has more than its route declares (body-limits.ts) before
 * it is parsed: members and elements in total and in each declared list, levels, and the length of texts. It counts each comma
 * and each opening bracket outside strings, because those cost a parser work. It does not check whether the body is JSON; the
 * parser does, and stops at the first error, up to which both read the same.
 */
import { Refusal } from '#platform/values/refusal.ts';

export interface JsonLimits {
  /** Members and elements in total. */
  members: number;
  depth: number;
  /** The maximum length of a text where nothing else is declared, in bytes of JSON. */
  text: number;
  root: Place;
  /** Names of members are the same in any letter case. */
  anyCase: boolean;
}

/** A place in the body, and the value that it may have. */
export interface Place {
  /** As in `attachments.*.content`; empty for the body itself. */
  path: string;
  /** The number of elements or members. */
  max: number;
  /** The maximum length of a text. */
  text: number;
  /** A list here can be the bytes of a file. */
  isBytes: boolean;
  named: Map<string, Place> | null;
  /** Elements, and members that are not in `named`. */
  any: Place | null;
}

/** The elements of a body that is a list: each is counted by itself. */
export interface ElementsSeen {
  /** The position at which the list begins; null if the body is something else. */
  start: number | null;
  /** The positions of the commas between them, in the body. */
  commas: number[];
  /** The position of the bracket that ends the list. */
  end: number | null;
  /** There is something between the brackets. */
  isFilled: boolean;
  /** There is something after the list. */
  hasMore: boolean;
  onComma(): void;
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openingBracket = 0x5b;
const backslash = 0x5c;
const closingBracket = 0x5d;
const openingBrace = 0x7b;
const closingBrace = 0x7d;
const space = 0x20;

/** The end of a longer string is searched by native code, because attachments are most of a large body. */
const shortString = 64;
/** With 50,000 members, three million bytes. */
const costOfByte = 1 / 64;
/** In bytes of JSON. No declared name is as long. */
const longestName = 256;

/** A list or object that is open, or what is around the body. */
interface Level {
  /** Null: nothing is declared. */
  place: Place | null;
  isList: boolean;
  size: number;
  /** A text that begins now is the name of a member. */
  isNameNext: boolean;
  /** The place of the value that comes next; of a list, see `valuePlace`. */
  value: Place | null;
}

/** The text that is being read. */
interface Text {
  isName: boolean;
  /** Its position in the body. */
  start: number;
  max: number;
  /** A name as far as it is known; null: nobody needs it. */
  name: string | null;
  /** The position in the chunk at which the rest of the name begins. */
  nameStart: number;
}

export class JsonCounter {
  readonly #limits: JsonLimits;
  readonly #elements: ElementsSeen | null;
  /** The name of what is counted, for refusals. */
  readonly #what: string;
  #count = 0;
  #isBegun = false;
  /** Bytes of earlier chunks. */
  #before = 0;
  #level: Level;
  readonly #around: Level[] = [];
  #text: Text | null = null;
  /** The previous chunk ended with a backslash. */
  #isEscaped = false;

  constructor(
    limits: JsonLimits,
    { elements = null, what = 'The body' }: { elements?: ElementsSeen | null; what?: string } = {},
  ) {
    this.#limits = limits;
    this.#elements = elements;
    this.#what = what;
    this.#level = { place: null, isList: false, size: 0, isNameNext: false, value: limits.root };
  }

  /** To be called with each chunk of the body. Throws a Refusal. */
  check(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; )
      at = this.#text === null ? this.#outsideText(chunk, at) : this.#insideText(chunk, at, this.#text);
    this.#before += chunk.length;
    const text = this.#text;
    if (text === null) return;
    this.#requireLength(text, this.#before);
    if (text.name !== null && text.name.length < longestName)
      text.name += chunk.toString('latin1', text.nameStart);
    text.nameStart = 0;
  }

  /** This function and the next return the position to continue at. */
  #outsideText(chunk: Buffer, start: number): number {
    for (let at = start; at < chunk.length; at += 1) {
      const byte = chunk[at]!;
      if (byte <= space) continue;
      if (this.#around.length < 2 && this.#elements !== null) this.#seeToken(byte, at);
      if (byte === comma) this.#next(at);
      else if (byte === quote) {
        this.#openText(at + 1);
        return at + 1;
      } else if (byte === colon) this.#level.isNameNext = false;
      else if (byte === openingBracket || byte === openingBrace) this.#open(byte === openingBracket);
      else if (byte === closingBracket || byte === closingBrace) this.#close(at);
    }
    return chunk.length;
  }

  /** Anything but white space outside strings, in the list or beside it. */
  #seeToken(byte: number, at: number): void {
    const seen = this.#elements!;
    if (this.#isBegun) {
      if (seen.end !== null) seen.hasMore = true;
      else if (byte !== closingBracket && byte !== closingBrace) seen.isFilled = true;
      return;
    }
    this.#isBegun = true;
    if (byte === openingBracket) seen.start = this.#before + at;
  }

  /** A quote after an odd number of backslashes is part of the text. */
  #insideText(chunk: Buffer, start: number, text: Text): number {
    const begin = this.#isEscaped ? start + 1 : start;
    for (let at = nextQuote(chunk, begin); at < chunk.length; at = nextQuote(chunk, at + 1)) {
      if (endsEscaping(chunk, begin, at)) continue;
      this.#isEscaped = false;
      this.#closeText(chunk, at, text);
      return at + 1;
    }
    this.#isEscaped = endsEscaping(chunk, begin, chunk.length);
    return chunk.length;
  }

  #take(cost: number): void {
    this.#count += cost;
    const { members } = this.#limits;
    if (this.#count > members)
      throw refusal(`${this.#what} has more than ${numeral(members)} members and elements in total.`);
  }

  #next(at: number): void {
    const level = this.#level;
    const { place, isList } = level;
    if (this.#around.length === 1 && isList && this.#elements !== null) {
      this.#count = 0;
      this.#elements.commas.push(this.#before + at);
      this.#elements.onComma();
    }
    this.#take(isList && place?.isBytes ? costOfByte : 1);
    level.size += 1;
    level.isNameNext = !isList;
    if (place !== null && level.size > place.max - 1) this.#refuseSize(place);
  }

  #open(isList: boolean): void {
    this.#take(1);
    const place = valuePlace(this.#level);
    this.#around.push(this.#level);
    const { depth } = this.#limits;
    if (this.#around.length > depth) throw refusal(`${this.#what} is nested more than ${depth} levels deep.`);
    this.#level = { place, isList, size: 0, isNameNext: !isList, value: null };
  }

  #close(at: number): void {
    const outer = this.#around.pop();
    // More brackets end than begin: the parser refuses that.
    if (outer === undefined) return;
    this.#level = outer;
    outer.isNameNext = false;
    if (this.#around.length === 0 && this.#elements !== null) this.#elements.end ??= this.#before + at;
  }

  #openText(start: number): void {
    const level = this.#level;
    const { place, isList, isNameNext: isName } = level;
    const isNeeded = isName && (place?.named ?? place?.any ?? null) !== null;
    const max = (isName ? null : valuePlace(level)?.text) ?? this.#limits.text;
    this.#text = { isName, start: this.#before + start, max, name: isNeeded ? '' : null, nameStart: start };
    if (isName) level.value = null;
    else if (isList && place?.isBytes) this.#take(1);
  }

  #closeText(chunk: Buffer, at: number, text: Text): void {
    this.#text = null;
    this.#requireLength(text, this.#before + at);
    if (text.name === null) return;
    const isLong = this.#before + at - text.start > longestName;
    this.#level.value = this.#placeOf(isLong ? '' : text.name + chunk.toString('latin1', text.nameStart, at));
  }

  /** A name can be written with escapes. */
  #placeOf(written: string): Place | null {
    const name = written.includes('\\') ? unescaped(written) : written;
    const { named = null, any = null } = this.#level.place ?? {};
    return named?.get(this.#limits.anyCase ? name.toLowerCase() : name) ?? any;
  }

  #requireLength({ isName, start, max }: Text, end: number): void {
    if (end - start <= max) return;
    const place = isName ? null : valuePlace(this.#level);
    const at = place === null || place.path === '' ? '' : ` at ${place.path}`;
    throw refusal(`${this.#what} has a text of more than ${numeral(max)} bytes${at}.`);
  }

  #refuseSize({ path, max }: Place): never {
    const at = path === '' ? '' : ` at ${path}`;
    throw refusal(
      `${this.#what} has more than ${numeral(max)} ${this.#level.isList ? 'elements' : 'members'}${at}.`,
    );
  }
}

const valuePlace = ({ isList, place, value }: Level) => (isList ? (place?.any ?? null) : value);

function unescaped(written: string): string {
  try {
    return JSON.parse(`"${written}"`);
  } catch {
    return written;
  }
}

/** The end of the chunk if there is none. */
function nextQuote(chunk: Buffer, from: number): number {
  const near = Math.min(from + shortString, chunk.length);
  for (let at = from; at < near; at += 1) if (chunk[at] === quote) return at;
  const found = chunk.indexOf(quote, near);
  return found === -1 ? chunk.length : found;
}

/** Whether the bytes between the two positions end with an odd number of backslashes. */
function endsEscaping(chunk: Buffer, begin: number, end: number): boolean {
  let at = end;
  while (at > begin && chunk[at - 1] === backslash) at -= 1;
  return (end - at) % 2 === 1;
}

const numeral = (count: number) => count.toLocaleString('en-US');

function refusal(message: string): Refusal {
  return new Refusal('BAD_REQUEST', message);
}
