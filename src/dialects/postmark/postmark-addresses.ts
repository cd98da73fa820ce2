/** Postmark's lists of addresses: one text with commas. */
import { decodeWords } from 'postal-mime';
import { mailboxText, parseMailbox } from '../../mail/address.ts';
import type { NamedAddress } from '../../mail/recipients.ts';
import { Refusal } from '../../mail/refusal.ts';

export const maxAddresses = 50;

/** The words of a refusal are Postmark's: Anymail reads which address it is. */
export function addressesIn(text: string, field: string): NamedAddress[] {
  const parts = partsOf(text);
  if (parts.length > maxAddresses)
    throw new Refusal('BAD_REQUEST', `${field} can have at most ${maxAddresses} addresses.`);
  return parts.map((part) => {
    // Words are decoded after the name is known: they can hold quotes and brackets.
    const parsed = parseMailbox(part) ?? parseMailbox(decodeWords(part));
    if (parsed) return { name: decodeWords(parsed.name), address: parsed.address };
    throw new Refusal('BAD_REQUEST', `Invalid '${field}' address: '${part.slice(0, 200)}'.`);
  });
}

/**
 * Split at the commas that are in no quotes. A parser of all that RFC 5322 allows takes time that grows with the square of the
 * length, and a batch has thousands of lists.
 */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  const add = (part: string) => part !== '' && parts.push(part);
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length && parts.length <= maxAddresses; at += 1) {
    const character = text[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (isQuoted && character === '\\') at += 1;
    else if (!isQuoted && character === ',') {
      add(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  add(text.slice(start).trim());
  return parts;
}

/** As dialect-send.ts takes them. What is not a text is refused there, and an empty text is none. */
export function mailboxesIn(value: unknown, field: string): unknown {
  if (typeof value !== 'string') return value ?? undefined;
  const list = addressesIn(value, field);
  return list.length === 0 ? undefined : list.map(mailboxText);
}
