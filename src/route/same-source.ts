/**
 * Greylisting knows a mail by the address that it comes from (RFC 6647 section 2.3): one that came back from another would
 * be new to it, and be put off again. So where a mail was greylisted, its next attempt comes from the same address of
 * ours.
 *
 * Held in memory, for a bounded number of mails: over a restart, or at another node, it is as if none was wanted.
 */
import { LRUCache } from 'lru-cache';

export interface SameSource {
  /** The address of ours that this delivery is to come from again; null: any. */
  of(deliveryId: string): string | null;
  /** An attempt from `source` has ended; `isGreylisted`: by being told to come again. */
  note(deliveryId: string, source: string | null, isGreylisted: boolean): void;
}

const maxMails = 10_000;

export function createSameSource(): SameSource {
  const sources = new LRUCache<string, string>({ max: maxMails });
  return {
    of: (deliveryId) => sources.get(deliveryId) ?? null,
    note(deliveryId, source, isGreylisted) {
      if (isGreylisted && source !== null) sources.set(deliveryId, source);
      else if (!isGreylisted) sources.delete(deliveryId);
    },
  };
}
