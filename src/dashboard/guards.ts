/**
 * Guessing, throttled: so many failures of an address, and so many at an account, in a quarter of an hour. In memory, for
 * a bounded number of each: losing it costs an attacker's quarter of an hour, no more.
 */
import { LRUCache } from 'lru-cache';
import { roomFor } from '../bounded.ts';
import type { Clock } from '../clock.ts';

const windowMs = 15 * 60_000;
const most = { address: 30, account: 10 };
const mostKept = 50_000;

export interface Guards {
  /** How long to wait before the next try; 0: try. */
  waitMs(address: string, account: string): number;
  fail(address: string, account: string): void;
  /** Who gets in has guessed nothing. */
  clear(account: string): void;
}

export function createGuards(clock: Clock): Guards {
  const addresses = windows(clock, most.address);
  const accounts = windows(clock, most.account);
  return {
    waitMs: (address, account) => Math.max(addresses.waitMs(networkOf(address)), accounts.waitMs(account)),
    fail(address, account) {
      addresses.fail(networkOf(address));
      accounts.fail(account);
    },
    clear: accounts.clear,
  };
}

function windows(clock: Clock, allowed: number) {
  const open = new LRUCache<string, { since: number; count: number }>(roomFor(mostKept));
  const current = (key: string) => {
    const known = open.get(key);
    return known && clock.now() - known.since < windowMs ? known : null;
  };
  return {
    waitMs(key: string): number {
      const known = current(key);
      return known && known.count >= allowed ? known.since + windowMs - clock.now() : 0;
    },
    fail(key: string): void {
      const known = current(key) ?? { since: clock.now(), count: 0 };
      known.count += 1;
      open.set(key, known);
    },
    clear: (key: string) => void open.delete(key),
  };
}

/** Whoever has an IPv6 address has 2^64 of them. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const first = head.split(':').filter((group) => group !== '');
  const last = tail?.split(':').filter((group) => group !== '') ?? [];
  const zeros = tail === undefined ? 0 : Math.max(8 - first.length - last.length, 0);
  return [...first, ...Array(zeros).fill('0'), ...last].slice(0, 4).join(':');
}
