/**
 * Reads the address list of a header field (RFC 5322 section 3.4) in time linear in its length, and lists that are none because a
 * name lacks its quotes: `Doe, John <a@b>`, `a@b <a@b>`, `Acme: Berlin (HQ) <a@b>`. A comma ends a mailbox only if there is an
 * address before it, because otherwise it can only be part of a name. Addresses are not checked.
 */
import { namesAnother } from './address.ts';
import type { NamedAddress } from './recipients.ts';

export interface AddressList {
  /** Names are as written, without quotes. A comment in one belongs to it (`Acme (Berlin) <a@b>`), unless it has an address. */
  mailboxes: NamedAddress[];
  /** Groups of the mailboxes from `start` to before `end`. */
  groups: { name: string; start: number; end: number }[];
  /** Follows the standard, so that every reader finds the same mailboxes. */
  isStandard: boolean;
}

/** A quoted string, an address in brackets, a separator, or other text. */
const token = /"(?:[^"\\]|\\.)*"|<(?:"(?:[^"\\]|\\.)*"|[^"<>])*>|[,;:]|[^"<>(),;:]+/suy;
/** RFC 5322 section 3.2.3, with the dots of section 4.1 and the letters of RFC 6532. */
const atoms = /^[\w!#$%&'*+\-/=?^`{|}~.\s\u0080-\u{10ffff}]*$/u;

/** Null if the text is not a list, or could be read in two ways. */
export function readAddressList(text: string): AddressList | null {
  const list = new ListReader(text);
  for (let at = 0; at < text.length; ) {
    if (text[at] === '(') {
      const end = endOfComment(text, at);
      if (end === null) return null;
      list.comment(text.slice(at + 1, end - 1));
      at = end;
      continue;
    }
    token.lastIndex = at;
    const found = token.exec(text)?.[0];
    if (found === undefined || !list.add(found, at)) return null;
    at += found.length;
  }
  return list.end();
}

class ListReader {
  readonly #mailboxes: NamedAddress[] = [];
  readonly #groups: AddressList['groups'] = [];
  readonly #lastSemicolon: number;
  readonly #endsWithComma: boolean;
  #isStandard = true;
  #isInGroup = false;
  /** The text of the mailbox that is being read. */
  #text = '';
  #bare = '';
  #name = '';
  #comment = '';
  #address: string | null = null;
  /** Facts about `#text` and `#bare`, kept because looking for them at each comma would take quadratic time. */
  #isBlank = true;
  #hasAt = false;

  constructor(text: string) {
    this.#lastSemicolon = text.lastIndexOf(';');
    this.#endsWithComma = text.trimEnd().endsWith(',');
  }

  comment(text: string): void {
    this.#comment = text;
    const isOfName = this.#address === null && !this.#isBlank && !namesAnother(text);
    this.#addText(' ', ' ', isOfName ? ` (${text}) ` : ' ');
  }

  /** False: the text is not a list. */
  add(found: string, at: number): boolean {
    if (found === ',') return this.#separate(found, true);
    if (found === ';') return this.#isInGroup ? this.#endGroup() : this.#separate(found, false);
    if (found === ':' && at < this.#lastSemicolon && !this.#hasAddress()) return this.#beginGroup();
    if (found.startsWith('<')) {
      if (this.#address !== null || namesAnother(this.#bare, found.slice(1, -1).trim())) return false;
      this.#address = found.slice(1, -1).trim();
      return true;
    }
    if (this.#address !== null) return found.trim() === '';
    if (found.startsWith('"')) this.#addText(found, '', found.slice(1, -1).replace(/\\(.)/gsu, '$1'));
    else this.#addText(found, found, found);
    return true;
  }

  end(): AddressList | null {
    this.#endMailbox();
    if (this.#isInGroup) return null;
    const isStandard = this.#isStandard && !this.#endsWithComma;
    return { mailboxes: this.#mailboxes, groups: this.#groups, isStandard };
  }

  #addText(text: string, bare: string, name: string): void {
    this.#text += text;
    this.#bare += bare;
    this.#name += name;
    this.#isBlank &&= text.trim() === '';
    this.#hasAt ||= bare.includes('@');
  }

  #hasAddress(): boolean {
    return this.#address !== null || this.#hasAt;
  }

  #separate(separator: string, isStandard: boolean): boolean {
    if (this.#hasAddress() || this.#isBlank) {
      this.#isStandard &&= isStandard;
      this.#endMailbox();
    } else this.#addText(separator, separator, separator);
    return true;
  }

  #beginGroup(): boolean {
    if (this.#isInGroup) return false;
    this.#isInGroup = true;
    const start = this.#mailboxes.length;
    this.#groups.push({ name: clean(this.#name), start, end: start });
    this.#reset();
    return true;
  }

  #endGroup(): boolean {
    this.#endMailbox();
    this.#isInGroup = false;
    this.#groups.at(-1)!.end = this.#mailboxes.length;
    return true;
  }

  #endMailbox(): void {
    if (this.#address !== null) {
      this.#isStandard &&= atoms.test(this.#bare);
      this.#mailboxes.push({ name: clean(this.#name || this.#comment), address: this.#address });
    } else if (!this.#isBlank) {
      this.#mailboxes.push({ name: clean(this.#comment), address: this.#text.trim() });
    }
    this.#reset();
  }

  #reset(): void {
    this.#text = '';
    this.#bare = '';
    this.#name = '';
    this.#comment = '';
    this.#address = null;
    this.#isBlank = true;
    this.#hasAt = false;
  }
}

function clean(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** The text with its comments as blanks. One that does not end takes the rest. */
export function withoutComments(text: string): string {
  let rest = '';
  let at = 0;
  for (let open = text.indexOf('('); open >= 0; open = text.indexOf('(', at)) {
    rest += `${text.slice(at, open)} `;
    at = endOfComment(text, open) ?? text.length;
  }
  return rest + text.slice(at);
}

/** The position after the comment, which may contain others (RFC 5322 section 3.2.2). */
export function endOfComment(text: string, start: number): number | null {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '(') depth += 1;
    else if (text[at] === ')') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return null;
}
