/**
 * The addresses that did not answer lately. It is a hint for the order of trying and keeps no address from being
 * tried, so losing an entry costs a moment, and being wrong costs none. Age is counted by the Clock.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../base/clock.ts';
import { roomFor } from '../base/lru-options.ts';

const mostAddresses = 10_000;
const lifeMs = 10 * 60_000;

export interface Paths {
  isDead(address: string): boolean;
  failed(address: string): void;
  worked(address: string): void;
}

export function createPaths(clock: Clock): Paths {
  const deadUntil = new LRUCache<string, number>(roomFor(mostAddresses));
  return {
    isDead: (address) => clock.now() < (deadUntil.get(address) ?? 0),
    failed: (address) => void deadUntil.set(address, clock.now() + lifeMs),
    worked: (address) => void deadUntil.delete(address),
  };
}
