/** The recipients of an email: in the order to, cc, bcc, each once. */

import { compareKey, domainOf } from './address.ts';
import type { RecipientKind } from './glossary.ts';

/** An address as it is shown in a header. */
export interface NamedAddress {
  /** The display name; empty if there is none. */
  name: string;
  address: string;
}

export interface Recipient extends NamedAddress {
  kind: RecipientKind;
  /** The form in which addresses are compared. */
  key: string;
  domain: string;
}

export function withoutName(address: string): NamedAddress {
  return { name: '', address };
}

/** Addresses that have been checked. One that occurs more than once is kept where it occurs first, as it is written there. */
export function recipientsOf(lists: Partial<Record<RecipientKind, NamedAddress[]>>): Recipient[] {
  const { to = [], cc = [], bcc = [] } = lists;
  const unique = new Map<string, Recipient>();
  for (const [kind, list] of [
    ['to', to],
    ['cc', cc],
    ['bcc', bcc],
  ] as const) {
    for (const { name, address } of list) {
      const key = compareKey(address);
      if (!unique.has(key)) unique.set(key, { kind, name, address, key, domain: domainOf(address)! });
    }
  }
  return [...unique.values()];
}

export function namesOf(recipients: Recipient[], wanted: RecipientKind): NamedAddress[] {
  return recipients.flatMap(({ kind, name, address }) => (kind === wanted ? [{ name, address }] : []));
}
