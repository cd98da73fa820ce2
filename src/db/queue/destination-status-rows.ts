/**
 * How destinations stand now: the operator's suspensions, and what running servers say of connections and circuits.
 * A server writes of the destinations that it has to do with about once a second; what is older than a minute was
 * written by one that has stopped, and counts for nothing.
 */

import { type Db, isPostgres } from '../engine/open.ts';
import { readMissing } from './ip-pools.ts';
import { isServedOnPostgres } from './server-running.ts';
import { listSuspensions, type Suspension } from './suspensions.ts';

/** As a server writes it; of several servers, what they have together. */
export interface DestinationState {
  /** Open now, and allowed now. */
  connections: number;
  limit: number;
  /** Claimed, and waiting in the server's memory. */
  waiting: number;
  circuit: Circuit | null;
  /** Since when it has been asking us to slow down, and the latest reply that did. */
  busySince: number | null;
  busyReply?: string | null;
  lastReply: string | null;
  lastReplyAt: number | null;
}

interface Circuit {
  since: number;
  failures: number;
  nextProbeAt: number;
  reason: string;
}

export interface DestinationStatuses {
  suspensions: Suspension[];
  /** By name; idle destinations are not there. */
  states: Map<string, DestinationState>;
  /** Pools of source addresses that mail may wait for, for no running node has them. */
  missingPools: string[];
  /** Whether a server is running that sends mail. */
  isServed: boolean;
}

const freshMs = 60_000;

/** `served`: whether a server that sends is running, where that is known; a server on SQLite knows that it is. */
export async function readDestinationStatuses(
  db: Db,
  now: number,
  served?: boolean,
): Promise<DestinationStatuses> {
  const suspensions = await listSuspensions(db, now);
  const states = new Map<string, DestinationState>();
  for (const { name, state } of await db('destinations').where('at', '>=', now - freshMs)) {
    const own: DestinationState & { rests?: boolean } = JSON.parse(state);
    if (own.rests) continue;
    const others = states.get(name);
    states.set(name, others ? together(others, own) : own);
  }
  const isServed = served ?? (!isPostgres(db) || (await isServedOnPostgres(db)));
  return { suspensions, states, missingPools: await readMissing(db, now), isServed };
}

function together(a: DestinationState, b: DestinationState): DestinationState {
  const latest = (b.lastReplyAt ?? 0) > (a.lastReplyAt ?? 0) ? b : a;
  return {
    connections: a.connections + b.connections,
    limit: a.limit + b.limit,
    waiting: a.waiting + b.waiting,
    circuit:
      [a.circuit, b.circuit].filter((one) => one !== null).sort((x, y) => x.nextProbeAt - y.nextProbeAt)[0] ??
      null,
    busySince:
      a.busySince === null || b.busySince === null
        ? (a.busySince ?? b.busySince)
        : Math.min(a.busySince, b.busySince),
    busyReply: (latest.busyReply ?? a.busyReply ?? b.busyReply) || null,
    lastReply: latest.lastReply,
    lastReplyAt: latest.lastReplyAt,
  };
}

/** Which destination served each of a few domains last; a domain that none has is not in it. */
export async function routesOf(db: Db, domains: string[]): Promise<Map<string, string>> {
  const rows = await db('routes').whereIn('domain', domains).select('domain', 'destination');
  return new Map(rows.map(({ domain, destination }) => [domain, destination]));
}

/** The domains that a destination served last. */
export async function domainsOf(db: Db, destination: string): Promise<string[]> {
  return db('routes').where({ destination }).pluck('domain');
}

/** Whether anybody has heard of a destination: as a domain that mail was for, or by its name. */
export async function isKnownDestination(db: Db, name: string): Promise<boolean> {
  const rows = await Promise.all([
    db('routes').where({ domain: name }).orWhere({ destination: name }).first(),
    db('destinations').where({ name }).first(),
  ]);
  return rows.some((row) => row !== undefined);
}
