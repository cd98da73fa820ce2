/**
 * The way to each domain, looked up once and kept a while: its hosts with their addresses and the protection that
 * each demands, and the destination that they are.
 *
 * `find` never rejects: what stands in the way of a route is its ending. Look-ups of one domain under way are
 * shared, and so many domains at once are looked up and no more, that a flood of them exhausts no sockets. What is
 * kept is the look-up; the order among hosts of equal preference is drawn anew at every call (RFC 5321 section 5.1),
 * which is how they share the load. Age is counted by the Clock.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../base/clock.ts';
import { limitConcurrency } from '../base/concurrency.ts';
import { lruOptions } from '../base/lru-options.ts';
import type { Destination, DestinationOf } from '../mail/destination-shape.ts';
import type { SessionResult } from '../outcome.ts';
import { findMx, type MxOptions, type RankedHost } from './mx.ts';
import type { Host, Protect, Route, Routes } from './route.ts';
import { shuffled } from './shuffle.ts';

export interface RouteCacheParts extends MxOptions {
  protect: Protect;
  destinationOf: DestinationOf;
  clock: Clock;
}

const maxDomains = 20_000;
const maxLookups = 300;
const goodTtlMs = 5 * 60_000;
/** Long enough for the mails of one moment to share it, too short for a retry to meet it again. */
const failureTtlMs = 10_000;

/** A route before the dice: `ranks` is each host's preference, by name. */
type Found = { destination: Destination } & (
  | { hosts: Host[]; ranks: Map<string, number> }
  | { result: SessionResult }
);

export function createRouteCache(parts: RouteCacheParts): Routes {
  const { clock, random } = parts;
  const kept = new LRUCache<string, { found: Found; until: number }>(lruOptions(maxDomains));
  const inFlight = new Map<string, Promise<Found>>();
  const inTurn = limitConcurrency(maxLookups);

  function known(domain: string): Found | null {
    const entry = kept.get(domain);
    return entry && clock.now() < entry.until ? entry.found : null;
  }

  function ask(domain: string): Promise<Found> {
    const asked = inTurn(() => lookUp(domain, parts)).then((found) => {
      // Forgotten meanwhile: those who wait still get it, nobody after them.
      if (inFlight.get(domain) === asked) keep(domain, found);
      return found;
    });
    inFlight.set(domain, asked);
    return asked;
  }

  function keep(domain: string, found: Found): void {
    inFlight.delete(domain);
    kept.set(domain, { found, until: clock.now() + ('result' in found ? failureTtlMs : goodTtlMs) });
  }

  return {
    async find(domain) {
      return routeOf(known(domain) ?? (await (inFlight.get(domain) ?? ask(domain))), random);
    },
    peek(domain) {
      // Asked for each mail, and for the destination alone: the order stays as it is.
      return known(domain);
    },
    forget(domain) {
      kept.delete(domain);
      inFlight.delete(domain);
    },
  };
}

async function lookUp(domain: string, parts: RouteCacheParts): Promise<Found> {
  try {
    return await resolved(domain, parts);
  } catch (error) {
    const detail = `trouble of our own on the way to ${domain}: ${(error as Error).message}`;
    return {
      destination: parts.destinationOf(domain, []),
      result: { kind: 'internal', detail, afterDot: false },
    };
  }
}

async function resolved(
  domain: string,
  { destinationOf, protect, ...options }: RouteCacheParts,
): Promise<Found> {
  const mx = await findMx(domain, options);
  if ('result' in mx) return { destination: destinationOf(domain, []), result: mx.result };
  const hosts = await protect(
    domain,
    mx.hosts.map(({ name, addresses }) => ({ name, addresses })),
  );
  if ('result' in hosts) return { destination: destinationOf(domain, []), result: hosts.result };
  return { destination: destinationOf(domain, mx.names), hosts, ranks: ranksOf(mx.hosts) };
}

const ranksOf = (hosts: RankedHost[]) => new Map(hosts.map(({ name, preference }) => [name, preference]));

/** Sorting keeps the shuffled order among equals. */
function routeOf(found: Found, random: () => number): Route {
  if ('result' in found) return found;
  const { destination, hosts, ranks } = found;
  const byRank = shuffled(hosts, random).sort((a, b) => ranks.get(a.name)! - ranks.get(b.name)!);
  return { destination, hosts: byRank };
}
