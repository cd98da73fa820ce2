/**
 * A bounded cache in front of a look-up. An entry lives a second, so that a change made elsewhere (the command line,
 * another node) holds within a second without anybody being told. Look-ups of one key under way are shared, and
 * what was not found is not kept.
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
  return async (key) => (await cache.fetch(key)) ?? null;
}
