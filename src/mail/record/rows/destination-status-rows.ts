/**
 * The state of destinations, which each node publishes about once a second for the operator and other nodes (nodes.ts): which
 * destination serves a recipient domain (`routes`), and connections and circuit of each destination that is not at rest
 * (`destinations`). On PostgreSQL, a row older than a minute is from a node that has stopped, and is ignored; on SQLite, all are
 * if no server is running.
 */

import type { ProblemCause } from '#mail/deliver/problem-cause.ts';
import { type DestinationOrder, listOrders } from '#mail/queue/rows/destination-rules.ts';
import { readMissing } from '#mail/queue/rows/ip-pools.ts';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { partsOf } from '#platform/database/engine/parts-of.ts';
import { type TokenReader, unnoticed } from '#platform/database/engine/quiet-check.ts';
import { isServedOnPostgres } from '#platform/database/tables/server-running.ts';

/** The state on one node, or the sum of several nodes. */
export interface DestinationState {
  /** Deliveries in flight, and how many are allowed now. */
  connections: number;
  limit: number;
  /** Leased deliveries that wait in memory for a connection. */
  waiting: number;
  circuit: { since: number; failures: number; nextProbeAt: number; reason: string } | null;
  /** Since when the destination has been throttling, and the latest reply that said so. */
  busySince: number | null;
  busyReply?: string | null;
  /** When it last asked us to slow down. Absent up to version 0.9. */
  busyAt?: number;
  lastReply: string | null;
  lastReplyAt: number | null;
  /** The trouble there, by the last attempts. Absent up to version 0.9. */
  problem?: DestinationProblem | null;
  /** Absent up to version 0.9. */
  accepted?: AcceptedMail | null;
}

/** The failures in a row for one cause (mail/record/destination-health.ts). */
export interface DestinationProblem {
  cause: ProblemCause;
  /** As in mail/deliver/reply-rules/. */
  category: string;
  since: number;
  /** The latest failure. */
  at: number;
  count: number;
  /** The reply, or what went wrong. */
  reply: string;
  /** The address of the host that said so. */
  host: string | null;
  /** When mail last bounced for it; null if it was only deferred. */
  bouncedAt: number | null;
  /** Since which of these times no host at all has answered this node; null or absent: one has, or it is of another kind. */
  silentSince?: 'since' | 'at' | null;
  /** It is over then, unless another attempt fails. */
  until?: number;
}

/** Mail accepted since a time, and how long its attempts took in all. */
export interface AcceptedMail {
  since: number;
  count: number;
  ms: number;
}

export interface PublishedState extends DestinationState {
  /** At rest; published only for other nodes. */
  rests: boolean;
  /** The facts that other nodes need (mail/queue/peer-state.ts). Nodes of other versions read it by this name. */
  told: object;
}

const rowsPerStatement = 200;

/** `states` by destination; null deletes the row of a destination that has come to rest. */
export async function saveStates(
  db: Db,
  node: string,
  states: Map<string, PublishedState | null>,
  now: number,
  ignore: TokenReader['ignore'],
): Promise<void> {
  const names = [...states.keys()];
  const kept = names.filter((name) => states.get(name) !== null);
  const gone = names.filter((name) => states.get(name) === null);
  const rows = kept.map((name) => ({ name, node, state: JSON.stringify(states.get(name)), at: now }));
  for (const part of partsOf(rows, rowsPerStatement))
    await unnoticed(db, db('destinations').insert(part).onConflict(['name', 'node']).merge(), ignore);
  const old = db('destinations').where({ node }).whereIn('name', gone).delete();
  if (gone.length > 0) await unnoticed(db, old, ignore);
}

/** Called when a node starts: its old states are not valid, but what was wrong at a destination still is. */
export async function takeProblems(db: Db, node: string): Promise<Map<string, DestinationProblem>> {
  const rows = await db('destinations').where({ node }).select('name', 'state');
  await db('destinations').where({ node }).delete();
  const states = rows.map(({ name, state }) => [name, JSON.parse(state) as PublishedState] as const);
  return new Map(states.flatMap(([name, { problem }]) => (problem ? [[name, problem]] : [])));
}

/** `routes`: recipient domain to destination. */
export async function saveRoutes(db: Db, routes: Map<string, string>): Promise<void> {
  const rows = [...routes].map(([domain, destination]) => ({ domain, destination }));
  for (const part of partsOf(rows, rowsPerStatement))
    await db('routes').insert(part).onConflict('domain').merge();
}

/** The trouble of a destination by one node, to which no host has answered since. */
export interface SilentDestination {
  node: string;
  destination: string;
  problem: DestinationProblem;
}

export interface DestinationStatuses {
  orders: DestinationOrder[];
  /** Statuses by name, without idle destinations. */
  states: Map<string, DestinationState>;
  silent: SilentDestination[];
  /** IP pools that no running node has, so that mail may wait for them. */
  missingPools: string[];
  /** Whether a server is running that sends mail. */
  isServed: boolean;
}

const freshMs = 60_000;

/** `served`: whether a server that sends is running, if the caller knows; on SQLite the server itself does. */
export async function readDestinationStatuses(
  db: Db,
  now: number,
  served?: boolean,
): Promise<DestinationStatuses> {
  const states = new Map<string, DestinationState>();
  const silent: SilentDestination[] = [];
  const isServed = served ?? (!isPostgres(db) || (await isServedOnPostgres(db)));
  const published = db('destinations');
  if (isPostgres(db)) published.where('at', '>=', now - freshMs);
  for (const { name, node, state } of isPostgres(db) || isServed ? await published : []) {
    const own: DestinationState & { rests?: boolean } = JSON.parse(state);
    if (own.rests && !own.problem) continue;
    if (own.problem?.silentSince) silent.push({ node, destination: name, problem: own.problem });
    const others = states.get(name);
    states.set(name, others ? sumOf(others, own) : own);
  }
  const orders = await listOrders(db, now);
  return { orders, states, silent, missingPools: await readMissing(db, now), isServed };
}

function sumOf(a: DestinationState, b: DestinationState): DestinationState {
  const latest = (b.lastReplyAt ?? 0) > (a.lastReplyAt ?? 0) ? b : a;
  return {
    connections: a.connections + b.connections,
    limit: a.limit + b.limit,
    waiting: a.waiting + b.waiting,
    circuit: merged(a.circuit, b.circuit, (x, y) => (y.nextProbeAt < x.nextProbeAt ? y : x)),
    busySince: merged(a.busySince, b.busySince, Math.min),
    busyReply: (latest.busyReply ?? a.busyReply ?? b.busyReply) || null,
    busyAt: Math.max(a.busyAt ?? 0, b.busyAt ?? 0),
    lastReply: latest.lastReply,
    lastReplyAt: latest.lastReplyAt,
    problem: merged(a.problem, b.problem, sameProblem),
    accepted: merged(a.accepted, b.accepted, (x, y) => ({
      // Nodes that began at another time differ by a few seconds.
      since: Math.min(x.since, y.since),
      count: x.count + y.count,
      ms: x.ms + y.ms,
    })),
  };
}

/** Merges the times of two nodes, of which one or both may know nothing. */
function merged<T>(a: T | null | undefined, b: T | null | undefined, both: (a: T, b: T) => T): T | null {
  return a != null && b != null ? both(a, b) : (a ?? b ?? null);
}

/** The latest; if the nodes see the same one, since the first of them. */
function sameProblem(a: DestinationProblem, b: DestinationProblem): DestinationProblem {
  const latest = b.at > a.at ? b : a;
  if (a.cause !== b.cause) return latest;
  return { ...latest, since: Math.min(a.since, b.since), count: a.count + b.count };
}

/** Returns the last destination of each domain; a domain without one is left out. */
export async function routesOf(db: Db, domains: string[]): Promise<Map<string, string>> {
  const rows = await db('routes').whereIn('domain', domains).select('domain', 'destination');
  return new Map(rows.map(({ domain, destination }) => [domain, destination]));
}

/** Returns the domains whose last destination this is. */
export async function domainsOf(db: Db, destination: string): Promise<string[]> {
  return db('routes').where({ destination }).pluck('domain');
}

/** Whether the name is a known destination or a recipient domain that has had one. */
export async function isKnownDestination(db: Db, name: string): Promise<boolean> {
  const rows = await Promise.all([
    db('routes').where({ domain: name }).orWhere({ destination: name }).first(),
    db('destinations').where({ name }).first(),
  ]);
  return rows.some((row) => row !== undefined);
}
