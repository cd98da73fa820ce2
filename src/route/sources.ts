/**
 * Our own addresses: which one the next connection comes from, and what we call ourselves there.
 *
 * Without any given the system chooses. Those given take turns, each family for itself; a family without any is not
 * used at all. One that cannot be bound rests for a while, which the operator is told once and not again until it
 * has served; while all of a family rest, the system chooses.
 */
import { isIPv6 } from 'node:net';
import type { Clock } from '../clock.ts';

export interface Source {
  address: string;
  /** What it says in EHLO; null: POSTERN_HOSTNAME. */
  name: string | null;
}

/** One end of a connection; `address` undefined: the system's choice. */
interface Origin {
  address: string | undefined;
  localName: string;
}

export interface Sources {
  /** Whether we have an end of the address's family. */
  canReach(address: string): boolean;
  /** Whose turn it is for a connection to `address`. */
  next(address: string): Origin;
  unusable(origin: Origin, error: Error): void;
  worked(origin: Origin): void;
}

export interface SourcesParts {
  sources: Source[];
  hostname: string;
  clock: Clock;
  onTrouble(what: string, error: unknown): void;
}

const restMs = 10 * 60_000;

export function createSources({ sources, hostname, clock, onTrouble }: SourcesParts): Sources {
  const systems: Origin = { address: undefined, localName: hostname };
  const origins = sources.map(({ address, name }) => ({ address, localName: name ?? hostname }));
  /** The one whose turn is next stands first. */
  const rings = {
    4: origins.filter(({ address }) => !isIPv6(address)),
    6: origins.filter(({ address }) => isIPv6(address)),
  };
  const ringOf = (address: string) => rings[isIPv6(address) ? 6 : 4];
  /** Until when, by address. */
  const resting = new Map<string, number>();

  return {
    canReach: (address) => origins.length === 0 || ringOf(address).length > 0,
    next(address) {
      const ring = ringOf(address);
      const at = ring.findIndex((origin) => clock.now() >= (resting.get(origin.address) ?? 0));
      if (at < 0) return systems;
      const [origin] = ring.splice(at, 1);
      ring.push(origin!);
      return origin!;
    },
    unusable({ address }, error) {
      if (address === undefined) return;
      const isNews = !resting.has(address);
      resting.set(address, clock.now() + restMs);
      if (isNews) onTrouble(`POSTERN_MTA_SOURCES: mail cannot be sent from ${address}`, error);
    },
    worked: ({ address }) => void (address !== undefined && resting.delete(address)),
  };
}
