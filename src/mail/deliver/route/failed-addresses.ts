/**
 * The addresses that failed recently. They only affect the order: every address is still tried, so a lost entry costs
 * a short delay and a wrong one costs nothing. Age is counted by the Clock.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import type { Clock } from '#platform/base/clock.ts';

const maxAddresses = 10_000;
const ttlMs = 10 * 60_000;

export function createFailedAddresses(clock: Clock) {
  const deadUntil = new LRUCache<string, number>(lruOptions(maxAddresses));
  return {
    isDead: (address: string) => clock.now() < (deadUntil.get(address) ?? 0),
    failed: (address: string) => void deadUntil.set(address, clock.now() + ttlMs),
    worked: (address: string) => void deadUntil.delete(address),
  };
}

export type FailedAddresses = ReturnType<typeof createFailedAddresses>;
