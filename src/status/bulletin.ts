/**
 * Keeps the operator's view of destinations up to date: writes what has changed since the last time, and now and
 * then what has not, so that a reader can tell a node that is gone. At rest a destination has no entry.
 */
import { LRUCache } from 'lru-cache';
import type { DestinationState } from '../db/destinations.ts';
import type { Line } from '../queue/line.ts';

export interface BulletinParts {
  saveStates(states: Map<string, DestinationState | null>, now: number): Promise<void>;
  saveRoutes(routes: Map<string, string>): Promise<void>;
}

const heartbeatMs = 20_000;
const mostRoutes = 50_000;

export function createBulletin(parts: BulletinParts) {
  /** What was written last, by destination. */
  const written = new Map<string, { text: string; at: number }>();
  const known = new LRUCache<string, string>({ max: mostRoutes });
  let fresh = new Map<string, string>();

  function news(lines: Iterable<Line>, now: number): Map<string, DestinationState | null> {
    const states = new Map<string, DestinationState | null>();
    const atRest = new Set(written.keys());
    for (const line of lines) {
      if (line.isIdle() && !line.isBroken()) continue;
      atRest.delete(line.name);
      const state = stateOf(line);
      const text = JSON.stringify(state);
      const last = written.get(line.name);
      if (last?.text === text && now < last.at + heartbeatMs) continue;
      written.set(line.name, { text, at: now });
      states.set(line.name, state);
    }
    for (const name of atRest) {
      written.delete(name);
      states.set(name, null);
    }
    return states;
  }

  return {
    /** Mail of this domain waits, and for whom. */
    route(domain: string, destination: string): void {
      if (known.get(domain) === destination) return;
      known.set(domain, destination);
      fresh.set(domain, destination);
    },
    async publish(lines: Iterable<Line>, now: number): Promise<void> {
      const states = news(lines, now);
      if (states.size > 0) await parts.saveStates(states, now);
      const routes = fresh;
      fresh = new Map();
      if (routes.size > 0) await parts.saveRoutes(routes);
    },
  };
}

function stateOf(line: Line): DestinationState {
  const { circuit, limit, busySince } = line.gauge;
  return {
    connections: line.underWay,
    limit,
    waiting: line.hand.length,
    circuit: circuit && {
      since: circuit.since,
      failures: circuit.failures,
      nextProbeAt: circuit.nextProbeAt,
      reason: circuit.reason,
    },
    busySince,
    lastReply: line.lastReply?.text ?? null,
    lastReplyAt: line.lastReply?.at ?? null,
  };
}
