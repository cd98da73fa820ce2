/**
 * The grammar of structured header fields that a caller may give (RFC 5322, 2369, 2919, 8058). Their values are never
 * encoded as a whole, because readers decode encoded words only in phrases (RFC 2047 section 5): a URL or an id that is
 * one would be lost. A value that does not follow the grammar is refused.
 */
import { decodeWords } from 'postal-mime';
import { domainOf, parseMailbox, parsePhrase, toDomain } from '#platform/values/address.ts';
import type { Mailbox } from '#platform/values/glossary.ts';
import { foldable, mailbox, phrase } from './field.ts';

interface Structure {
  /** A description of valid values, for error messages. */
  expected: string;
  /** The value as it is written; null if it does not follow the grammar. */
  write(value: string): string | null;
}

/** A word of this length fits on a line of 998 bytes with its brackets and comma. */
const maxWord = 880;
const maxEncoded = 8192;

const ids: Structure = { expected: 'message ids such as <id@domain>, separated by spaces', write: idsOf };
const urls: Structure = {
  expected: `URLs of at most ${maxWord} characters, each in angle brackets, such as <https://example.com/u> or <mailto:u@example.com>, separated by commas`,
  write: urlsOf,
};
const addresses: Structure = {
  expected: 'addresses in ASCII, each as address or Name <address>, separated by commas',
  write: addressesOf,
};
const otherList: Structure = {
  expected: `printable ASCII without words of more than ${maxWord} characters`,
  write: (value) => (foldable.test(value) ? value : null),
};

const structures: Record<string, Structure> = {
  references: ids,
  'in-reply-to': ids,
  'list-help': urls,
  'list-unsubscribe': urls,
  'list-subscribe': urls,
  'list-owner': urls,
  'list-archive': urls,
  'archived-at': urls,
  'list-post': { expected: `NO, or ${urls.expected}`, write: postOf },
  'list-id': { expected: 'an id of at most 255 characters such as Name <list.example.com>', write: listIdOf },
  'list-unsubscribe-post': {
    expected: 'List-Unsubscribe=One-Click',
    write: (value) => (/^list-unsubscribe=one-click$/i.test(value) ? 'List-Unsubscribe=One-Click' : null),
  },
  'disposition-notification-to': addresses,
  'return-receipt-to': addresses,
  'errors-to': addresses,
  'mail-reply-to': addresses,
  'mail-followup-to': addresses,
};

/** Fields of URLs in angle brackets, by their lower-case names. */
export const urlFields = /^(?:list-(?:help|unsubscribe|subscribe|owner|archive|post)|archived-at)$/;

/** Undefined for an unstructured field. */
export function structureOf(name: string): Structure | undefined {
  const key = name.toLowerCase();
  const known = Object.hasOwn(structures, key) ? structures[key] : undefined;
  const structure = known ?? (key.startsWith('list-') ? otherList : undefined);
  return structure && { ...structure, write: (value) => writtenOf(structure, value) };
}

/** Some programs encode whatever they give; the value is decoded if only then it follows the grammar. */
function writtenOf({ write }: Structure, value: string): string | null {
  const isEncoded = value.length <= maxEncoded && /^=\?\S+\?=/.test(value);
  return (isEncoded ? write(decodeWords(value)) : null) ?? write(value);
}

/**
 * Angle brackets may be left out. Their content is not checked further, because these ids are often those of other
 * programs, and not all have the form of RFC 5322 section 3.6.4.
 */
function idsOf(value: string): string | null {
  const words = value.replaceAll('><', '> <').split(/[ \t]+/);
  const isId = (word: string) =>
    word.length <= maxWord && /^(?:<[!-;=?-~]+>|[!-;=?-~][!-;=?A-~]*@[!-;=?-~]+)$/.test(word);
  return words.every(isId)
    ? words.map((word) => (word.startsWith('<') ? word : `<${word}>`)).join(' ')
    : null;
}

const comment = String.raw`\([^()\\\x00-\x08\x0a-\x1f\x7f]{0,200}\)`;
const url = `<(?<url>[^\\s<>]{1,${maxWord}})>`;

/** RFC 2369 section 2. Programs leave out the brackets, and write an address without `mailto:`. */
function urlsOf(value: string): string | null {
  const element = new RegExp(`(?<before>(?:${comment}[ \\t]*)*)${url}(?<after>(?:[ \\t]*${comment})*)`, 'y');
  const found = elementsOf(value, element) ?? elementsOf(inBrackets(value), element);
  const written = found?.map(({ groups }) => {
    const { before = '', url = '', after = '' } = groups!;
    const ascii = asciiUrl(url);
    return ascii && `${asciiOnly(before)}<${ascii}>${asciiOnly(after)}`;
  });
  const text = written?.every((one) => one !== null) ? written.join(', ') : '';
  return foldable.test(text) ? text : null;
}

/** URLs between other signs than those of the standard. */
function inBrackets(value: string): string {
  const urls = value.split(/[\s,;<>"]{1,20}(?=(?:https?|mailto):)/i).map(withoutSigns);
  return urls.flatMap((one) => (one === '' ? [] : [`<${one}>`])).join(', ');
}

/** A loop, because a search for signs at the end begins again at each of them. */
function withoutSigns(text: string): string {
  const isSign = (at: number) => /[\s,;<>"]/.test(text.charAt(at));
  let [start, end] = [0, text.length];
  while (start < end && isSign(start)) start += 1;
  while (end > start && isSign(end - 1)) end -= 1;
  return text.slice(start, end);
}

/** Comments are for people; one that would need encoded words is left out. */
function asciiOnly(comments: string): string {
  return /^[\t\x20-\x7e]*$/.test(comments) ? comments : '';
}

/** With A-labels and percent signs instead of what is not ASCII; null if it is no URL. */
export function asciiUrl(text: string): string | null {
  const given = domainOf(text) === null ? text : `mailto:${text}`;
  const [, start = '', host = '', rest = given] =
    /^([a-z][a-z0-9+.-]{0,30}:\/\/(?:[^/?#@]{0,200}@)?|mailto:[^/?#@]{1,200}@)([^/?#:@]{1,255})(.*)$/isu.exec(
      given,
    ) ?? [];
  const asciiHost = /[^\x21-\x7e]/.test(host) ? (toDomain(host) ?? host) : host;
  const written = `${start}${asciiHost}${rest}`.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
  return written.length <= maxWord && URL.canParse(written) ? written : null;
}

/** RFC 2369 section 3.4. */
function postOf(value: string): string | null {
  const [, no, rest = ''] = new RegExp(`^(NO)((?:[ \\t]+${comment})?)$`, 'i').exec(value) ?? [];
  return no === undefined ? urlsOf(value) : `${no}${asciiOnly(rest)}`;
}

const listId = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)+$/;

/** RFC 2919 section 3. */
function listIdOf(value: string): string | null {
  const found = /^(?<name>.*)<(?<label>[^<>]{1,255})>$/u.exec(value);
  if (!found || /\p{Cc}/u.test(value)) return null;
  const { label = '', name: given = '' } = found.groups!;
  const id = /^[\x21-\x7e]*$/.test(label) ? label : (toDomain(label) ?? '');
  const name = parsePhrase(given.trim());
  if (!listId.test(id) || name === null) return null;
  return name === '' ? `<${id}>` : `${phrase(name)} <${id}>`;
}

function addressesOf(value: string): string | null {
  return parseAddresses(value)?.map(mailbox).join(', ') ?? null;
}

/** Mailboxes separated by commas, which can be written in ASCII; null if the value is anything else. */
export function parseAddresses(value: string): Mailbox[] | null {
  const element = /(?:"(?:[^"\\]|\\.)*"|<[^<>]*>|[^",<>])+/uy;
  const parsed = elementsOf(value, element)?.map(([text]) => parseMailbox(text.trim()));
  const isAscii = (one: Mailbox | null): one is Mailbox => one !== null && /^[\x20-\x7e]*@/.test(one.address);
  return parsed?.every(isAscii) ? parsed : null;
}

/** The elements of a list with commas; null if the value is not one. `element` is a sticky expression. */
function elementsOf(value: string, element: RegExp): RegExpExecArray[] | null {
  const found: RegExpExecArray[] = [];
  const separator = /[ \t]*,[ \t]*/y;
  for (let at = 0; ; at = separator.lastIndex) {
    element.lastIndex = at;
    const one = element.exec(value);
    if (!one) return null;
    found.push(one);
    separator.lastIndex = element.lastIndex;
    if (element.lastIndex === value.length) return found;
    if (!separator.test(value)) return null;
  }
}
