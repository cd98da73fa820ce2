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
import { roomFor } from './lru-options.ts';

export interface Memory<Value> {
  get(name: string): Promise<Value | null>;
  /** Kept for `lifeMs` milliseconds. */
  set(name: string, value: Value, lifeMs: number): Promise<void>;
}

/** Where entries are kept (db/queue/learned-rows.ts). */
export interface MemoryRows<Value> {
  read(name: string): Promise<Entry<Value> | null>;
  write(name: string, entry: Entry<Value>): Promise<void>;
}

export interface Entry<Value> {
  value: Value;
  expiresAt: number;
}

const mostNames = 10_000;

export function createMemory<Value>(
  rows: MemoryRows<Value>,
  clock: Clock,
  onTrouble: (what: string, error: unknown) => void,
  freshMs = 30_000,
): Memory<Value> {
  type Held = { entry: Promise<Entry<Value> | null>; readAt: number };
  const names = new LRUCache<string, Held>(roomFor(mostNames));

  function hold(name: string, entry: Held['entry']): Held {
    const held = { entry, readAt: clock.now() };
    names.set(name, held);
    return held;
  }

  /** Callers that come while a name is being read share the reading. */
  function read(name: string): Held {
    const entry = rows.read(name).catch((error) => {
      onTrouble(`what was learned of ${name} cannot be read; going on without`, error);
      return null;
    });
    return hold(name, entry);
  }

  return {
    async get(name) {
      const now = clock.now();
      const known = names.get(name);
      const { entry } = known && now < known.readAt + freshMs ? known : read(name);
      const found = await entry;
      return found && found.expiresAt > now ? found.value : null;
    },
    async set(name, value, lifeMs) {
      const entry = { value, expiresAt: clock.now() + lifeMs };
      hold(name, Promise.resolve(entry));
      try {
        await rows.write(name, entry);
      } catch (error) {
        onTrouble(`what was learned of ${name} cannot be kept; it is forgotten`, error);
      }
    },
  };
}
