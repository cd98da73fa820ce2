/**
 * Limits failed keys for each client network (an IPv4 address or an IPv6 /64): after ten in a minute, wrong and missing
 * keys get 429. Valid keys always pass. The counts are in memory for a bounded number of networks; if they are lost, an
 * attacker gains one minute.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import type { RateWindow } from './rate-headers.ts';

const allowed = 10;
const windowMs = 60_000;
const maxNetworks = 100_000;

export interface AuthThrottle {
  /** Counts a failure. `exceeded` is true if the network had used up its window before. */
  fail(address: string): { exceeded: boolean; window: RateWindow };
}

export function createAuthThrottle(clock: Clock): AuthThrottle {
  const windows = new LRUCache<string, { since: number; count: number }>(lruOptions(maxNetworks));
  return {
    fail(address) {
      const now = clock.now();
      const network = clientNetwork(address);
      const known = windows.get(network);
      const open = known && isRecent(known.since, now, windowMs) ? known : { since: now, count: 0 };
      open.count += 1;
      windows.set(network, open);
      return {
        exceeded: open.count > allowed,
        window: {
          name: 'failed-keys',
          limit: allowed,
          remaining: Math.max(allowed - open.count, 0),
          resetMs: open.since + windowMs - now,
        },
      };
    },
  };
}
