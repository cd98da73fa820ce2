/**
 * Throttles wrong passwords and codes. In 15 minutes a network may fail 30 times, and 10 times at one account. An attack from many
 * networks slows an account down for unknown browsers, but never locks it. A browser that has signed in to the account before
 * has 10 attempts of its own and is not slowed down by others (known-browsers.ts).
 *
 * The counters are in memory and their number is bounded. Losing them gives an attacker one more window, nothing else.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';

const windowMs = 15 * 60_000;
const max = { network: 30, account: 10 };
const maxKept = 50_000;

/** An account has this many failures, from all networks, before pauses begin; each further failure doubles the pause. */
const attemptsWithoutPause = 20;
const minPauseMs = 1000;
const maxPauseMs = 60_000;
const pauseTtlMs = 60 * 60_000;

interface LoginAttempt {
  /** The client's address. */
  address: string;
  account: string;
  /** The id of a browser that the account knows. */
  browser: string | null;
}

export interface LoginThrottle {
  /** Whether the login is right, or how long to wait if it was not checked. */
  attempt(login: LoginAttempt, isRight: () => Promise<boolean>): Promise<boolean | { waitMs: number }>;
}

/** Counts failures by key. */
interface Counter {
  waitMs(key: string): number;
  count(key: string): void;
  /** Removes one failure: the login was right, or was not checked. */
  undo(key: string): void;
  /** Removes all failures, after a successful login. */
  clear?(key: string): void;
}

export function createLoginThrottle(clock: Clock): LoginThrottle {
  const networks = windows(clock, max.network);
  const atAccounts = windows(clock, max.account, true);
  const accounts = pauses(clock);

  function countersOf({ address, account, browser }: LoginAttempt): [Counter, string][] {
    if (browser !== null) return [[atAccounts, `${account} browser ${browser}`]];
    const network = clientNetwork(address);
    return [
      [networks, network],
      [atAccounts, `${account} network ${network}`],
      [accounts, account],
    ];
  }

  return {
    async attempt(login, isRight) {
      const counters = countersOf(login);
      const waitMs = Math.max(...counters.map(([counter, key]) => counter.waitMs(key)));
      if (waitMs > 0) return { waitMs };
      // Counted before it is checked, so that concurrent attempts cannot exceed the limit.
      for (const [counter, key] of counters) counter.count(key);
      let verdict: boolean | null = null;
      try {
        verdict = await isRight();
        return verdict;
      } finally {
        if (verdict !== false) for (const [counter, key] of counters) counter.undo(key);
        if (verdict === true) for (const [counter, key] of counters) counter.clear?.(key);
      }
    },
  };
}

function windows(clock: Clock, allowed: number, isClearedOnSuccess = false): Counter {
  const open = new LRUCache<string, { since: number; count: number }>(lruOptions(maxKept));
  const current = (key: string) => {
    const known = open.get(key);
    return known && isRecent(known.since, clock.now(), windowMs) ? known : null;
  };
  return {
    waitMs(key) {
      const known = current(key);
      return known && known.count >= allowed ? known.since + windowMs - clock.now() : 0;
    },
    count(key) {
      const known = current(key) ?? { since: clock.now(), count: 0 };
      known.count += 1;
      open.set(key, known);
    },
    undo(key) {
      const known = current(key);
      if (known) known.count -= 1;
    },
    ...(isClearedOnSuccess && { clear: (key) => void open.delete(key) }),
  };
}

function pauses(clock: Clock): Counter {
  const open = new LRUCache<string, { lastAt: number; count: number }>(lruOptions(maxKept));
  const current = (key: string) => {
    const known = open.get(key);
    return known && isRecent(known.lastAt, clock.now(), pauseTtlMs) ? known : null;
  };
  return {
    waitMs(key) {
      const known = current(key);
      if (!known || known.count < attemptsWithoutPause) return 0;
      const pauseMs = Math.min(minPauseMs * 2 ** (known.count - attemptsWithoutPause), maxPauseMs);
      return Math.max(known.lastAt + pauseMs - clock.now(), 0);
    },
    count(key) {
      open.set(key, { lastAt: clock.now(), count: (current(key)?.count ?? 0) + 1 });
    },
    undo(key) {
      const known = current(key);
      if (known) known.count -= 1;
    },
  };
}
