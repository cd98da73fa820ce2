/**
 * The addresses that did not answer lately. It is a hint for the order of trying and keeps no address from being
 * tried, so losing an entry costs a moment, and being wrong costs none. Age is counted by the Clock.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../base/clock.ts';
import { lruOptions } from '../base/lru-options.ts';

const maxAddresses = 10_000;
const ttlMs = 10 * 60_000;

export interface FailedAddresses {
  isDead(address: string): boolean;
  failed(address: string): void;
  worked(address: string): void;
}

export function createFailedAddresses(clock: Clock): FailedAddresses {
  const deadUntil = new LRUCache<string, number>(lruOptions(maxAddresses));
  return {
    isDead: (address) => clock.now() < (deadUntil.get(address) ?? 0),
    failed: (address) => void deadUntil.set(address, clock.now() + ttlMs),
    worked: (address) => void deadUntil.delete(address),
  };
}
