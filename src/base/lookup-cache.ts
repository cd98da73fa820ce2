/**
 * A bounded cache in front of a lookup. Entries live for a second, so that a change made elsewhere (the command line,
 * another node) takes effect within a second without a notification. Concurrent lookups of one key are shared. A lookup
 * that finds nothing is not cached.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from './lru-options.ts';

const ttlMs = 1000;

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
