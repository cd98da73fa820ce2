/**
 * Postmark's ids are numbers, for some SDKs of 32 bits, and ours are UUIDs. The number is a hash of the UUID. An organization has
 * at most 50 webhooks and 1,000 domains, so two of them hardly ever have one number; if they do, the UUID tells them apart.
 */
import { hash } from 'node:crypto';
import { requireItem } from '#front/dialects/dialect.ts';
import { Refusal } from '#platform/values/refusal.ts';

export function numberOf(id: string): number {
  return hash('sha256', id, 'buffer').readUInt32BE() >>> 1;
}

/** `given`: the number or the UUID. */
export function findByNumber<Row extends { id: string }>(rows: Row[], given: string, noun: string): Row {
  const found = rows.filter(({ id }) => String(numberOf(id)) === given || id === given.toLowerCase());
  if (found.length <= 1) return requireItem(found[0] ?? null, noun);
  const ids = found.map(({ id }) => id).join(' or ');
  throw new Refusal('BAD_REQUEST', `Several have the number ${given}. Give ${ids} instead.`);
}
