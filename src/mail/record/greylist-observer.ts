/**
 * Follows mails through the greylisting of their destinations: learns from each refusal and from the success after it, and
 * answers how long a refused mail should wait. Each answer is kept for 30 days after its last change.
 *
 * The first refusals are in memory only, for a bounded number of mails: a mail that waits while the process restarts, or
 * that was first refused for another reason, is neither learned from nor given a learned wait.
 */

import { LRUCache } from 'lru-cache';
import { type Greylisting, learn, nothingLearned, waitFor } from '#mail/queue/greylist.ts';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import { elapsed } from '#platform/base/clock.ts';
import type { PersistentCache } from '#platform/base/persistent-cache.ts';
import type { Attempt, Delivery } from '#platform/values/glossary.ts';

/** The learned wait for this mail, or null if there is none. Never rejects. */
export type ObserveGreylisting = (delivery: Delivery, attempt: Attempt) => Promise<number | null>;

const ttlMs = 30 * 86_400_000;
const maxMails = 10_000;

export function createGreylistObserver(cache: PersistentCache<Greylisting>): ObserveGreylisting {
  const firstRefusals = new LRUCache<string, number>(lruOptions(maxMails));

  async function learnFrom(attempt: Attempt, outcome: 'refused' | 'accepted', waitedMs: number) {
    const known = (await cache.get(attempt.destination)) ?? nothingLearned;
    const learned = learn(known, { outcome, waitedMs });
    if (learned !== known) await cache.set(attempt.destination, learned, ttlMs);
    return learned;
  }

  return async (delivery, attempt) => {
    const { outcome, category } = attempt.verdict;
    const isRefused = outcome === 'deferred' && category === 'greylisting';
    if (isRefused && delivery.attempts === 0) firstRefusals.set(delivery.id, attempt.endedAt);
    const refusedAt = firstRefusals.get(delivery.id);
    if (refusedAt === undefined || !(isRefused || outcome === 'delivered')) return null;
    const waitedMs = elapsed(refusedAt, attempt.endedAt);
    const learned = await learnFrom(attempt, isRefused ? 'refused' : 'accepted', waitedMs);
    if (isRefused) return waitFor(learned, waitedMs);
    firstRefusals.delete(delivery.id);
    return null;
  };
}
