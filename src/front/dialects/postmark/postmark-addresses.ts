/** Postmark's lists of addresses: one text with commas. */
import { decodeWords } from 'postal-mime';
import { addressTexts } from '#front/dialects/address-texts.ts';
import { mailboxCure, mailboxText, parseMailbox } from '#platform/values/address.ts';
import type { NamedAddress } from '#platform/values/recipients.ts';
import { Refusal } from '#platform/values/refusal.ts';

export const maxAddresses = 50;
/** More than so many addresses with the longest names have. */
const maxLength = maxAddresses * 2000;

/** The words of a refusal are Postmark's: Anymail reads which address it is. */
export function addressesIn(text: string, field: string): NamedAddress[] {
  const parts = text.length > maxLength ? null : addressTexts(text);
  if (parts === null || parts.length > maxAddresses)
    throw new Refusal('BAD_REQUEST', `${field} can have at most ${maxAddresses} addresses.`);
  return parts.map((part) => {
    // Words are decoded after the name is known: they can hold quotes and brackets.
    const parsed = parseMailbox(part) ?? parseMailbox(decodeWords(part));
    if (parsed) return { name: decodeWords(parsed.name), address: parsed.address };
    const cure = mailboxCure(part);
    const advice = cure && ` Give it${cure.slice(1)}.`;
    throw new Refusal('BAD_REQUEST', `Invalid '${field}' address: '${part.slice(0, 200)}'.${advice}`);
  });
}

/** As dialect-send.ts takes them. What is not a text is refused there, and an empty text is none. */
export function mailboxesIn(value: unknown, field: string): unknown {
  if (typeof value !== 'string') return value ?? undefined;
  const list = addressesIn(value, field);
  return list.length === 0 ? undefined : list.map(mailboxText);
}
