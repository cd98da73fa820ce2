/**
 * Caches the route to each domain: its hosts with their addresses and protection, and the destination that they form.
 *
 * `find` never rejects: without a route there is a result that says why. Concurrent look-ups of one domain are shared,
 * and the number of parallel look-ups is limited so that a flood of domains does not exhaust the sockets. The cache
 * holds the look-up; hosts of equal preference get a new random order at every call (RFC 5321 section 5.1), which
 * balances the load. Age is counted by the Clock.
 */
import { LRUCache } from 'lru-cache';
import type { SessionResult } from '#mail/deliver/outcome.ts';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import type { Clock } from '#platform/base/clock.ts';
import { limitConcurrency } from '#platform/base/limits/slots.ts';
import type { Destination, DestinationOf } from '#platform/values/destination-shape.ts';
import { findMx, type MxOptions } from './mx.ts';
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
/** Long enough for mails of the same moment to share it, too short for a retry to see it again. */
const failureTtlMs = 10_000;

/** A route before its hosts are shuffled. `names`: its MX hosts; `ranks`: each host's preference, by name. */
type Found = { destination: Destination; names: string[] } & (
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
    const lookup = inTurn(() => lookUp(domain, parts)).then((found) => {
      // If `forget` was called meanwhile, the waiting callers still get it, but it is not cached.
      if (inFlight.get(domain) === lookup) keep(domain, found);
      return found;
    });
    inFlight.set(domain, lookup);
    return lookup;
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
      // Called for each mail, only for the destination, so the hosts are not shuffled.
      return known(domain);
    },
    forget(domain) {
      kept.delete(domain);
      inFlight.delete(domain);
    },
    reshape() {
      kept.forEach(({ found }, domain) => {
        found.destination = parts.destinationOf(domain, found.names);
      });
    },
  };
}

async function lookUp(domain: string, parts: RouteCacheParts): Promise<Found> {
  try {
    return await resolved(domain, parts);
  } catch (error) {
    const detail = `internal error in the route lookup for ${domain}: ${(error as Error).message}`;
    return {
      destination: parts.destinationOf(domain, []),
      names: [],
      result: { kind: 'internal', detail, afterDot: false },
    };
  }
}

async function resolved(
  domain: string,
  { destinationOf, protect, ...options }: RouteCacheParts,
): Promise<Found> {
  const mx = await findMx(domain, options);
  if ('result' in mx) return { destination: destinationOf(domain, []), names: [], result: mx.result };
  const hosts = await protect(
    domain,
    mx.hosts.map(({ name, addresses }) => ({ name, addresses })),
  );
  const ranks = new Map(mx.hosts.map(({ name, preference }) => [name, preference]));
  return { destination: destinationOf(domain, mx.names), names: mx.names, hosts, ranks };
}

/** Sorting keeps the shuffled order among equals. */
function routeOf(found: Found, random: () => number): Route {
  if ('result' in found) return found;
  const { destination, hosts, ranks } = found;
  const byRank = shuffled(hosts, random).sort((a, b) => ranks.get(a.name)! - ranks.get(b.name)!);
  return { destination, hosts: byRank };
}
