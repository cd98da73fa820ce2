import type { Knex } from 'knex';
import { domainOf } from '#platform/values/address.ts';

/** A condition for deliveries to this address; upper and lower case, and both forms of its domain, are the same. */
export function isTo(address: string): (query: Knex.QueryBuilder) => void {
  const domain = domainOf(address);
  const local = address.slice(0, address.lastIndexOf('@'));
  const spellings = [address, `${local}@${domain}`].map((each) => each.toLowerCase());
  return (query) => {
    query.where({ domain }).where((either) => {
      either.where({ recipient: address }).orWhereRaw('lower(recipient) in (?, ?)', spellings);
    });
  };
}
