/**
 * Remembers our source address for a greylisted mail, so that its next attempt uses the same one. Greylisting identifies
 * a mail by its source address (RFC 6647 section 2.3): from another address it would be deferred again.
 *
 * Kept in memory for a bounded number of mails; after a restart or on another node any address may be used.
 */
import { LRUCache } from 'lru-cache';

const maxMails = 10_000;

export function createSameSource() {
  const sources = new LRUCache<string, string>({ max: maxMails });
  return {
    /** The source address that this delivery must use again; null: any. */
    of: (deliveryId: string): string | null => sources.get(deliveryId) ?? null,
    /** An attempt from `source` has ended; `isGreylisted`: the host asked us to retry because of greylisting. */
    note(deliveryId: string, source: string | null, isGreylisted: boolean): void {
      if (isGreylisted && source !== null) sources.set(deliveryId, source);
      else if (!isGreylisted) sources.delete(deliveryId);
    },
  };
}
