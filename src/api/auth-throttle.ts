/**
 * Failed keys of a client's network (an IPv4 address, an IPv6 /64): ten a minute, then wrong and missing keys are answered 429. Right keys always
 * pass. In memory, for a bounded number of addresses: losing it costs an attacker's minute, no more.
 */
import { LRUCache } from 'lru-cache';
import { clientNetwork } from '../base/client-network.ts';
import type { Clock } from '../base/clock.ts';
import { lruOptions } from '../base/lru-options.ts';
import type { RateWindow } from './rate-headers.ts';

const allowed = 10;
const windowMs = 60_000;
const maxAddresses = 100_000;

export interface AuthThrottle {
  /** Notes a failure; `exceeded` where the address had used up its window before. */
  fail(address: string): { exceeded: boolean; window: RateWindow };
}

export function createAuthThrottle(clock: Clock): AuthThrottle {
  const windows = new LRUCache<string, { since: number; count: number }>(lruOptions(maxAddresses));
  return {
    fail(address) {
      const now = clock.now();
      const network = clientNetwork(address);
      const known = windows.get(network);
      const open = known && now - known.since < windowMs ? known : { since: now, count: 0 };
      open.count += 1;
      windows.set(network, open);
      return {
        exceeded: open.count > allowed,
        window: {
          name: 'guesses',
          limit: allowed,
          remaining: Math.max(allowed - open.count, 0),
          resetMs: open.since + windowMs - now,
        },
      };
    },
  };
}
