/** Postmark's lists of addresses: one text with commas. */
import { addressParser, decodeWords } from 'postal-mime';
import { domainOf, mailboxText } from '../../mail/address.ts';
import type { NamedAddress } from '../../mail/recipients.ts';
import { Refusal } from '../../mail/refusal.ts';

/** Fifty addresses with long names; a longer text is refused without parsing. */
const maxLength = 50_000;

/** The words of a refusal are Postmark's: Anymail reads which address it is. */
export function addressesIn(text: string, field: string): NamedAddress[] {
  if (text.length > maxLength)
    throw new Refusal('BAD_REQUEST', `${field} must have at most ${maxLength} characters.`);
  return addressParser(text, { flatten: true }).map(({ name, address = '' }) => {
    if (domainOf(address) !== null) return { name: decodeWords(name), address };
    throw new Refusal('BAD_REQUEST', `Invalid '${field}' address: '${(address || name).slice(0, 200)}'.`);
  });
}

/** As dialect-send.ts takes them. What is not a text is refused there, and an empty text is none. */
export function mailboxesIn(value: unknown, field: string): unknown {
  if (typeof value !== 'string') return value ?? undefined;
  const list = addressesIn(value, field);
  return list.length === 0 ? undefined : list.map(mailboxText);
}
