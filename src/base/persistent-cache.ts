/**
 * What was learned of the world and is kept over a restart: MTA-STS policies, hosts whose TLS failed, greylisting.
 * Every entry lapses. Losing one costs a detour, never a mail: trouble with the rows beneath is reported, and what
 * cannot be read or kept is as if it had not been learned. Nothing here rejects.
 *
 * A bounded number of names is held in front of the rows, those that are not there too. Other nodes write to the
 * same rows, so what is held is read anew after half a minute, or sooner where what they learn is worth more.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';
import { lruOptions } from './lru-options.ts';

export interface PersistentCache<Value> {
  get(name: string): Promise<Value | null>;
  /** Kept for `lifeMs` milliseconds. */
  set(name: string, value: Value, ttlMs: number): Promise<void>;
}

/** Where entries are kept (db/queue/learned-rows.ts). */
export interface PersistentCacheRows<Value> {
  read(name: string): Promise<PersistentEntry<Value> | null>;
  write(name: string, entry: PersistentEntry<Value>): Promise<void>;
}

export interface PersistentEntry<Value> {
  value: Value;
  expiresAt: number;
}

const maxNames = 10_000;

export function createPersistentCache<Value>(
  rows: PersistentCacheRows<Value>,
  clock: Clock,
  onError: (what: string, error: unknown) => void,
  freshMs = 30_000,
): PersistentCache<Value> {
  type Cached = { entry: Promise<PersistentEntry<Value> | null>; readAt: number };
  const names = new LRUCache<string, Cached>(lruOptions(maxNames));

  function keep(name: string, entry: Cached['entry']): Cached {
    const cached = { entry, readAt: clock.now() };
    names.set(name, cached);
    return cached;
  }

  /** Callers that come while a name is being read share the reading. */
  function read(name: string): Cached {
    const entry = rows.read(name).catch((error) => {
      onError(`what was learned of ${name} cannot be read; going on without`, error);
      return null;
    });
    return keep(name, entry);
  }

  return {
    async get(name) {
      const now = clock.now();
      const known = names.get(name);
      const { entry } = known && now < known.readAt + freshMs ? known : read(name);
      const found = await entry;
      return found && found.expiresAt > now ? found.value : null;
    },
    async set(name, value, ttlMs) {
      const entry = { value, expiresAt: clock.now() + ttlMs };
      keep(name, Promise.resolve(entry));
      try {
        await rows.write(name, entry);
      } catch (error) {
        onError(`what was learned of ${name} cannot be kept; it is forgotten`, error);
      }
    },
  };
}
