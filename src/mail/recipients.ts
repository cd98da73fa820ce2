/** The recipients of an email: in the order to, cc, bcc, each once. */
import type { RecipientKind } from '../glossary.ts';
import { compareKey, domainOf } from './address.ts';

export interface Recipient {
  kind: RecipientKind;
  address: string;
  /** The form in which addresses are compared. */
  key: string;
  domain: string;
}

/** Addresses that have been checked. An address that occurs more than once is kept where it occurs first, as it is written there. */
export function recipientsOf({
  to = [],
  cc = [],
  bcc = [],
}: Partial<Record<RecipientKind, string[]>>): Recipient[] {
  const unique = new Map<string, Recipient>();
  for (const [kind, addresses] of [
    ['to', to],
    ['cc', cc],
    ['bcc', bcc],
  ] as const) {
    for (const address of addresses) {
      const key = compareKey(address);
      if (!unique.has(key)) unique.set(key, { kind, address, key, domain: domainOf(address)! });
    }
  }
  return [...unique.values()];
}
