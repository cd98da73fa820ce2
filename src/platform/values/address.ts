/**
 * Email addresses: syntax, the canonical form for comparing, and the domain for lookups.
 *
 * Accepts RFC 5321 mailboxes (dot-string or quoted local part) with the UTF-8 of RFC 6531, at a fully qualified
 * domain name. Refuses address literals (`user@[192.0.2.1]`) and single-label domains, because no public mail goes there,
 * and the comments, folding and lists of RFC 5322, and what nobody sees (hidden-characters.ts).
 *
 * BUGS: refuses angle brackets in a quoted local part.
 */
import { domainToASCII } from 'node:url';
import { decodeWords } from 'postal-mime';
import type { Mailbox } from './glossary.ts';
import { hasHidden, trimBlanks, withoutHidden } from './hidden-characters.ts';

const dotString = /^[^\s\p{Cc}"(),:;<>@[\\\]]+$/u;
const quotedString = /^"(?:[^\p{Cc}"\\<>]|\\[^\p{Cc}<>])*"$/u;
const domainName =
  /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** RFC 5321 section 4.5.3.1: a local part has 64 bytes at most, a path 256 with its angle brackets. */
const maxLocalPartLength = 64;
const maxAddressLength = 254;
/** Longer than any address in Unicode. A longer text is refused without parsing. */
const maxUnicodeLength = 1024;

/** RFC 5322 section 2.1.1: a line has 998 bytes, and each character of a name may need a backslash. */
const maxNameLength = 400;

/** Domains that need no conversion: no capitals, no Punycode, and a last label that cannot be part of an IPv4 address. */
const plainDomain = /^(?!.*xn--)[a-z0-9.-]+\.[a-z][a-z0-9-]*$/;

/** The A-label of a domain in lower case, or null if the text is not a fully qualified domain name. */
export function toDomain(text: string): string | null {
  if (plainDomain.test(text)) return domainName.test(text) ? text : null;
  // domainToASCII drops some of them.
  return text.length > maxUnicodeLength || hasHidden(text) ? null : asciiDomain(text);
}

function asciiDomain(text: string): string | null {
  // domainToASCII is made for URLs and cuts the text at these characters; none is valid in a domain name.
  if (/[\s/?#@:[\]\\%]/.test(text)) return null;
  const ascii = domainToASCII(text);
  return domainName.test(ascii) && !/^[\d.]+$/.test(ascii) ? ascii : null;
}

/** The domain (A-label) of a well-formed plain address, or null if the text is not one. */
export function domainOf(address: string): string | null {
  if (address.length > maxUnicodeLength) return null;
  const at = address.lastIndexOf('@');
  if (at < 1 || !address.isWellFormed()) return null;
  const local = address.slice(0, at);
  const bytes = Buffer.byteLength(local);
  if (bytes > maxLocalPartLength || hasHidden(local) || !(quotedString.test(local) || isDotString(local)))
    return null;
  const domain = toDomain(address.slice(at + 1));
  return domain !== null && bytes + 1 + domain.length <= maxAddressLength ? domain : null;
}

function isDotString(local: string): boolean {
  return dotString.test(local) && !/^\.|\.\.|\.$/.test(local);
}

/**
 * The form in which addresses are compared: A-label domain, lower case, Unicode normalized. Earlier versions accepted addresses
 * with hidden characters; they can still be found and removed.
 */
export function compareKey(address: string): string {
  const local = withoutQuotes(address.slice(0, address.lastIndexOf('@')));
  return `${local.normalize('NFC').toLowerCase()}@${storedDomain(address)}`;
}

function storedDomain(address: string): string | null {
  const domain = domainOf(address);
  if (domain !== null || address.length > maxUnicodeLength) return domain;
  return asciiDomain(address.slice(address.lastIndexOf('@') + 1));
}

/** RFC 5321 section 4.1.2: the mailbox is the same with and without unneeded quotes and backslashes. */
function withoutQuotes(local: string): string {
  if (!local.startsWith('"')) return local;
  const inside = local.slice(1, -1).replace(/\\(.)/gu, '$1');
  return isDotString(inside) ? inside : `"${inside}"`;
}

/**
 * The address for the SMTP envelope: the local part as given, the domain as its A-label. `domain` is that A-label if the
 * caller has it.
 */
export function envelopeAddress(address: string, domain = storedDomain(address)): string {
  return `${address.slice(0, address.lastIndexOf('@'))}@${domain}`;
}

/** Reads `address` or `Name <address>`, with blanks around them; null if the text is neither. */
export function parseMailbox(given: string): Mailbox | null {
  const text = trimBlanks(given);
  if (/\p{Cc}/u.test(text) || !text.isWellFormed()) return null;
  const whole = text.replace(/\s?[,;]$/, '');
  const named = /^(?<name>"(?:[^"\\]|\\.)*"\s*|[^<>]*)<(?<address>[^<>]+)>$/u.exec(whole);
  const address = named ? trimBlanks(named.groups!.address!) : whole;
  const name = named ? parsePhrase(named.groups!.name!.trim(), address) : '';
  const domain = domainOf(address);
  return domain === null || name === null ? null : { name, address, domain };
}

/** `Name <address>` as parseMailbox reads it (RFC 5322 section 3.2.3: the name in quotes if it needs them), or the address. */
export function mailboxText({ name, address }: { name: string; address: string }): string {
  if (name === '') return address;
  const phrase = /["(),:;<>@[\]\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name;
  return `${phrase} <${address}>`;
}

/** How to correct a text that is not a mailbox, to append to "must be …"; empty if that is not certain. */
export function mailboxCure(text: string): string {
  const hidden = withoutHidden(text);
  if (hidden !== '' || text.length > maxNameLength) return hidden;
  const [, name = '', address = ''] = /^([^",;]+)<([^<>]+)>$/.exec(trimBlanks(text)) ?? [];
  const quoted = headerOf({ name: name.trim(), address, domain: '' });
  const hasTwo = /<[^<>]*@/.test(name);
  return hasTwo || parseMailbox(quoted) === null ? '' : `, with the name in quotes: ${quoted}`;
}

/** RFC 2047. Nobody's name looks like this, and no reader decodes one in quotes. */
const encodedWords = /^(?:=\?[\w.*-]{1,40}\?[bq]\?[^?\s]{0,400}\?=\s{0,9})+$/i;

/**
 * A display name without its quotes, or null if it could be mistaken for another address than `own` or would break a header.
 * Programs write names without the quotes that they need (`Doe, John <a@b>`, `John "Jack" Doe <a@b>`, `a@b <a@b>`); we write
 * them in quotes.
 */
export function parsePhrase(text: string, own?: string): string | null {
  if (text.length > maxNameLength) return null;
  const quoted = /^"(?<inside>(?:[^"\\]|\\.)*)"$/u.exec(text);
  const given = quoted ? quoted.groups!.inside!.replace(/\\(.)/gu, '$1') : text;
  const name = encodedWords.test(given) ? decodeWords(given) : given;
  if (/\p{Cc}/u.test(name) || !name.isWellFormed()) return null;
  // An encoded word can no more be mistaken for an address than a name in quotes.
  const isOpen = name.split('"').length % 2 === 0;
  if (!quoted && name === given && (isOpen || /[<>]/.test(name) || namesAnother(name, own))) return null;
  return name.replace(/ +/g, ' ');
}

/** Whether an unquoted name has an address in it that is not its own. */
export function namesAnother(name: string, own = ''): boolean {
  const words = name.split(/[\s,;:()]+/).filter((word) => /\S@\S/.test(word));
  return words.some((word) => word.toLowerCase() !== own.toLowerCase());
}

/** As in a From field. */
export function headerOf({ name, address }: Mailbox): string {
  return name === '' ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`;
}
