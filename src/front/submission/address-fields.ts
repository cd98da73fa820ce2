/** Reads the address lists of a submitted message: To and Cc, which say who sees whom, and Reply-To. */
import { fieldValue, type Head } from '#mail/compose/head.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';
import { readAddressList } from '#platform/values/mailbox-list.ts';
import { type NamedAddress, type Recipient, recipientsOf } from '#platform/values/recipients.ts';
import { shown } from './from-field.ts';

/** The names are for people. Text that is not a valid address is left out. The head is bounded (mail/compose/head.ts). */
export function addressesIn(value: string | null): NamedAddress[] {
  return (readAddressList(value ?? '')?.mailboxes ?? []).flatMap(({ name, address }) =>
    domainOf(address) === null ? [] : [{ name: shown(name).slice(0, maxNameLength), address }],
  );
}

const maxNameLength = 400;

/** The recipients of the envelope: those that To or Cc names are of that kind, the others are bcc. */
export function recipientsIn(head: Head, envelope: string[]): Recipient[] {
  const keyed = envelope.map((address) => ({ address, key: compareKey(address) }));
  const namedIn = (field: string): NamedAddress[] => {
    const names = new Map(
      addressesIn(fieldValue(head, field)).map(({ name, address }) => [compareKey(address), name]),
    );
    return keyed.flatMap(({ address, key }) => (names.has(key) ? [{ name: names.get(key)!, address }] : []));
  };
  // An address that is in To or Cc, too, counts there.
  const all = envelope.map((address) => ({ name: '', address }));
  return recipientsOf({ to: namedIn('to'), cc: namedIn('cc'), bcc: all });
}
