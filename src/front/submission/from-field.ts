/**
 * Reads the sender from a From field (RFC 5322 section 3.6.2) if it names one mailbox and no mail program could read another
 * one from it: quoted strings and comments are removed first, and the rest may contain one address and no trace of a second.
 */
import { decodeWords } from 'postal-mime';
import { domainOf, mailboxText, parseMailbox } from '#platform/values/address.ts';
import { endOfComment } from '#platform/values/mailbox-list.ts';

/** Replaces each quoted string while the rest of the value is checked. */
const mark = '\u0001';

/** `Name <address>`, or the address; null if the field does not name exactly one mailbox. */
export function senderOf(value: string): string | null {
  const read = separateQuoted(value);
  if (!read) return null;
  const { text, quoted } = read;
  const named = /^(?<name>[^<>,;:@]*)<\s*(?<address>[^<>,;:\s]+)\s*>$/u.exec(text.trim());
  const address = named ? named.groups!.address! : text.trim();
  let next = 0;
  const unmark = (part: string, restore: (inside: string) => string) =>
    part.replaceAll(mark, () => restore(quoted[next++]!));
  const name = unmark(named ? named.groups!.name! : '', (inside) => inside.replace(/\\(.)/gu, '$1'));
  const mailbox = unmark(address, (inside) => `"${inside}"`);
  if (domainOf(mailbox) === null) return null;
  const withName = mailboxText({ name: shown(name), address: mailbox });
  // A name that cannot be shown is left out.
  return [withName, mailbox].find((form) => parseMailbox(form)) ?? null;
}

/** A name as a mail program shows it; a forged one may contain control characters. */
export function shown(name: string): string {
  return decodeWords(name)
    .replace(/\p{Cc}/gu, ' ')
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim();
}

/**
 * Replaces quoted strings by marks and comments by spaces. Null if a quoted string or comment does not end, or if the value
 * has a control character, or a backslash outside of them.
 */
function separateQuoted(value: string): { text: string; quoted: string[] } | null {
  if (/[^\P{Cc}\t]/u.test(value)) return null;
  const quoted: string[] = [];
  let text = '';
  for (let at = 0; at < value.length; at++) {
    const character = value[at]!;
    if (character === '\\') return null;
    if (character !== '"' && character !== '(') {
      text += character;
      continue;
    }
    const end = character === '"' ? endOfQuoted(value, at) : endOfComment(value, at);
    if (end === null) return null;
    if (character === '"') quoted.push(value.slice(at + 1, end - 1));
    text += character === '"' ? mark : ' ';
    at = end - 1;
  }
  return { text, quoted };
}

/** The position after the quoted string. */
function endOfQuoted(value: string, start: number): number | null {
  for (let at = start + 1; at < value.length; at++) {
    if (value[at] === '\\') at += 1;
    else if (value[at] === '"') return at + 1;
  }
  return null;
}
