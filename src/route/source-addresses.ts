/**
 * Our own addresses: which one the next connection comes from, and what we call ourselves there.
 *
 * Without any given the system chooses. Those of a pool take turns, each family for itself; a family without any is not
 * used at all. One that cannot be bound rests for a while, which the operator is told once and not again until it
 * has served. While all of a family rest, the system chooses; but where addresses are in several pools its choice might
 * be another pool's, so they are tried all the same.
 */
import { isIPv6 } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { defaultPool } from '../mail/ip-pool.ts';

export interface Source {
  address: string;
  /** What it says in EHLO; null: POSTERN_HOSTNAME. */
  name: string | null;
  /** The set of addresses that it is one of. */
  pool: string;
}

/** What one delivery asks of our end: the pool, and the address that it came from before, if it is to come again. */
export interface Wanted {
  pool: string;
  address: string | null;
}

/** One end of a connection; `address` undefined: the system's choice. */
interface Origin {
  address: string | undefined;
  localName: string;
}

export interface Sources {
  /** Whether the pool has an end of the address's family. */
  canReach(address: string, pool: string): boolean;
  /** Whose turn it is for a connection to `address`, and who follows where that one cannot be used. */
  turns(address: string, wanted: Wanted): Iterable<Origin>;
  unusable(origin: Origin, error: Error): void;
  worked(origin: Origin): void;
}

export interface SourcesParts {
  sources: Source[];
  hostname: string;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

const restMs = 10 * 60_000;

export function createSources({ sources, hostname, clock, onError }: SourcesParts): Sources {
  const systems: Origin = { address: undefined, localName: hostname };
  const areInPools = sources.some(({ pool }) => pool !== defaultPool);
  /** The one whose turn is next stands first. */
  const rings = new Map<string, { address: string; localName: string }[]>();
  for (const { address, name, pool } of sources) {
    const key = keyOf(pool, address);
    rings.set(key, [...(rings.get(key) ?? []), { address, localName: name ?? hostname }]);
  }
  const ringOf = (address: string, pool: string) => rings.get(keyOf(pool, address)) ?? [];
  /** Until when, by address. */
  const resting = new Map<string, number>();
  const rests = (address: string) => clock.now() < (resting.get(address) ?? 0);
  const isSystems = (pool: string) => sources.length === 0 && pool === defaultPool;

  return {
    canReach: (address, pool) => isSystems(pool) || ringOf(address, pool).length > 0,
    *turns(address, { pool, address: wanted }) {
      const ring = ringOf(address, pool);
      const tried = new Set<string>();
      const take = (suits: (address: string) => boolean) => {
        const at = ring.findIndex((origin) => !tried.has(origin.address) && suits(origin.address));
        if (at < 0) return null;
        const [origin] = ring.splice(at, 1);
        ring.push(origin!);
        tried.add(origin!.address);
        return origin!;
      };
      for (;;) {
        const next = take((one) => one === wanted && !rests(one)) ?? take((one) => !rests(one));
        if (!next) break;
        yield next;
      }
      if (!areInPools) yield systems;
      else for (let next = take(rests); next; next = take(rests)) yield next;
    },
    unusable({ address }, error) {
      if (address === undefined) return;
      const isNews = !resting.has(address);
      resting.set(address, clock.now() + restMs);
      if (isNews) onError(`POSTERN_MTA_SOURCES: mail cannot be sent from ${address}`, error);
    },
    worked: ({ address }) => void (address !== undefined && resting.delete(address)),
  };
}

const keyOf = (pool: string, address: string) => `${isIPv6(address) ? 6 : 4} ${pool}`;
