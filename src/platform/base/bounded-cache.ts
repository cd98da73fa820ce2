/** Caches with a bounded number of entries. */
import { LRUCache } from 'lru-cache';

/**
 * Limits an LRUCache to `max` entries without allocating them in advance. Its own `max` option does: for a hundred thousand
 * entries that takes two megabytes, and fifteen milliseconds at start.
 */
export const lruOptions = (max: number) => ({ maxSize: max, sizeCalculation: () => 1 });

const ttlMs = 1000;

/**
 * A bounded cache in front of a lookup. Entries live for a second, so that a change made elsewhere (the command line,
 * another node) takes effect within a second without a notification. Concurrent lookups of one key are shared. A lookup
 * that finds nothing is not cached.
 */
export function cached<Value extends object>(
  find: (key: string) => Promise<Value | null>,
  max: number,
): (key: string) => Promise<Value | null> {
  const cache = new LRUCache<string, Value>({
    ...lruOptions(max),
    ttl: ttlMs,
    fetchMethod: async (key) => (await find(key)) ?? undefined,
  });
  // `fetch` makes several objects even for what is there.
  return async (key) => cache.get(key) ?? (await cache.fetch(key)) ?? null;
}

/** The same, and what is not there is remembered as well: for lookups that strangers can make in any number. */
export function cachedAnswer<Value>(
  find: (key: string) => Promise<Value>,
  max: number,
): (key: string) => Promise<Value> {
  const answer = cached(async (key) => ({ value: await find(key) }), max);
  return async (key) => (await answer(key))!.value;
}
