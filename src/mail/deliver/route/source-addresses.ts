/**
 * Our own addresses: which one the next connection uses, and its name in EHLO.
 *
 * If none is configured, the system chooses. The addresses of a pool take turns, each family separately; a family
 * without an address is not used. An address that cannot be bound is avoided for ten minutes and logged once, until it
 * works again. If all addresses of a family are avoided, the system chooses; but with several pools its choice might
 * belong to another pool, so the avoided addresses are tried after all.
 */
import { isIPv6 } from 'node:net';
import type { Clock } from '#platform/base/clock.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';

export interface Source {
  address: string;
  /** Its name in EHLO; null: POSTERN_HOSTNAME. */
  name: string | null;
  /** Its IP pool. */
  pool: string;
}

/** How far our addresses may be used now (mail/deliver/warm-up.ts). */
export interface Allowance {
  allows(address: string): boolean;
  /** Called last before the address is used; false: it may not be used after all. */
  take(address: string): boolean;
}

/** The requirements of a delivery: the IP pool, the address it must use again, if any, and how far addresses may be used. */
export interface Wanted {
  pool: string;
  address: string | null;
  /** Absent: without limits. */
  allowance?: Allowance;
}

/** Our end of a connection; `address` undefined: the system chooses. */
interface Origin {
  address: string | undefined;
  localName: string;
}

const restMs = 10 * 60_000;

export function createSources(parts: {
  sources: Source[];
  hostname: string;
  clock: Clock;
  onError(what: string, error: unknown): void;
}) {
  const { sources, hostname, clock, onError } = parts;
  const systems: Origin = { address: undefined, localName: hostname };
  const areInPools = sources.some(({ pool }) => pool !== defaultPool);
  /** The one whose turn is next stands first. */
  const rotations = new Map<string, { address: string; localName: string }[]>();
  for (const { address, name, pool } of sources) {
    const key = rotationName(pool, address);
    rotations.set(key, [...(rotations.get(key) ?? []), { address, localName: name ?? hostname }]);
  }
  const rotationOf = (address: string, pool: string) => rotations.get(rotationName(pool, address)) ?? [];
  /** Until when, by address. */
  const resting = new Map<string, number>();
  const rests = (address: string) => clock.now() < (resting.get(address) ?? 0);
  const isSystems = (pool: string) => sources.length === 0 && pool === defaultPool;

  return {
    /** Whether the pool has an address of the same family. */
    canReach: (address: string, { pool, allowance = unlimited }: Wanted) =>
      isSystems(pool) || rotationOf(address, pool).some((one) => allowance.allows(one.address)),
    /** Our addresses for a connection to `address`, in the order in which they are to be used. */
    *turns(address: string, { pool, address: wanted, allowance = unlimited }: Wanted): Iterable<Origin> {
      const rotation = rotationOf(address, pool);
      const tried = new Set<string>();
      const take = (suits: (address: string) => boolean) => {
        const isUsable = (one: string) => !tried.has(one) && suits(one) && allowance.take(one);
        const at = rotation.findIndex((origin) => isUsable(origin.address));
        if (at < 0) return null;
        const [origin] = rotation.splice(at, 1);
        rotation.push(origin!);
        tried.add(origin!.address);
        return origin!;
      };
      for (;;) {
        const next = take((one) => one === wanted && !rests(one)) ?? take((one) => !rests(one));
        if (!next) break;
        yield next;
      }
      const noneWorks = rotation.every((origin) => rests(origin.address));
      if (!areInPools && noneWorks) yield systems;
      else for (let next = take(rests); next; next = take(rests)) yield next;
    },
    unusable({ address }: Origin, error: Error): void {
      if (address === undefined) return;
      const isNews = !resting.has(address);
      resting.set(address, clock.now() + restMs);
      if (isNews) onError(`POSTERN_MTA_SOURCES: mail cannot be sent from ${address}`, error);
    },
    worked: ({ address }: Origin) => void (address !== undefined && resting.delete(address)),
  };
}

export type Sources = ReturnType<typeof createSources>;

const unlimited: Allowance = { allows: () => true, take: () => true };

const rotationName = (pool: string, address: string) => `${isIPv6(address) ? 6 : 4} ${pool}`;
