/**
 * A cache that survives restarts, for knowledge about other hosts: MTA-STS policies, failed TLS, greylisting. Every
 * entry expires. Losing one costs an extra round trip, never a mail: errors of the database are reported, an entry that
 * cannot be read or written counts as missing, and no call here rejects.
 *
 * A bounded number of names, missing ones included, is kept in memory. Other nodes write to the same rows, so a name is
 * read again after `freshMs`: half a minute, or less if news from other nodes matters more.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from './bounded-cache.ts';
import { type Clock, isRecent } from './clock.ts';

export interface PersistentCache<Value> {
  get(name: string): Promise<Value | null>;
  /** The entry expires after `ttlMs`. */
  set(name: string, value: Value, ttlMs: number): Promise<void>;
}

/** The table of entries (mail/queue/rows/learned-rows.ts). */
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

  /** Callers that ask for a name while it is being read share the read. */
  function read(name: string): Cached {
    const entry = rows.read(name).catch((error) => {
      onError(`the cached entry for ${name} cannot be read; continuing without it`, error);
      return null;
    });
    return keep(name, entry);
  }

  return {
    async get(name) {
      const now = clock.now();
      const known = names.get(name);
      const { entry } = known && isRecent(known.readAt, now, freshMs) ? known : read(name);
      const found = await entry;
      return found && found.expiresAt > now ? found.value : null;
    },
    async set(name, value, ttlMs) {
      const entry = { value, expiresAt: clock.now() + ttlMs };
      keep(name, Promise.resolve(entry));
      try {
        await rows.write(name, entry);
      } catch (error) {
        onError(`the cached entry for ${name} cannot be stored; it will be lost at a restart`, error);
      }
    },
  };
}
