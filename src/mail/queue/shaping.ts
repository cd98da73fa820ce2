/**
 * How many deliveries at once a destination gets, learned from its replies: pure functions from one state to the next.
 *
 *   limit     begins low, and grows by one with each success while all of it is in use; when the host asks us to slow
 *             down, it falls below what was in use and stays there for 1 min, then twice as long each time that one more
 *             proves too many, at most 30 min; a single refusal of a number that worked before is taken for chance
 *   rest      if the host asks us to slow down with nothing else in use, the next start waits: 2 s, doubling to 5 min
 *   circuit   opens after five failures in a row to reach anything there; then one delivery at a time probes: after 15 s,
 *             doubling to 5 min, and whenever a retry falls due. Any answer closes it.
 *   rate      if the shape has one, starts are spread evenly over the minute
 *
 * With several nodes, the state is that of all nodes together (peer-state.ts), and each has its share of it (share.ts).
 * The clock and the shape are parameters; this file knows no sockets and no deliveries.
 */

import type { DestinationShape } from '#platform/values/destination-shape.ts';
import type { Signal } from '#platform/values/glossary.ts';

export interface ConcurrencyState {
  /** How many deliveries are allowed at once; at least 1. */
  limit: number;
  /** The number that worked when more did not, and until when more are not tried. Null if more was never refused. */
  ceiling: { limit: number; until: number; holdMs: number } | null;
  /** No start before this time, because of the rate or a rest. */
  nextStartAt: number;
  restUntil: number;
  restMs: number;
  /** Failures in a row to reach anything there. */
  failures: number;
  circuit: Circuit | null;
  /** Since when the host has been asking us to slow down, and when it last did. */
  busySince: number | null;
  busyAt: number;
  /** When a host there last answered. */
  answeredAt: number;
}

export interface Circuit {
  since: number;
  failures: number;
  nextProbeAt: number;
  waitMs: number;
  probing: boolean;
  failedAt: number;
  reason: string;
}

const failuresToOpen = 5;
const firstProbeMs = 15_000;
const maxProbeMs = 5 * 60_000;
/**
 * A retry that falls due may probe at once, unless another attempt has just failed there: in a long queue, retries fall due
 * all the time. Not longer than the first wait of the retry schedule, so that a single mail follows its schedule.
 */
const betweenProbesMs = 30_000;
/** A refusal of a number that worked before is chance if it is the only one in this time. */
const chanceMs = 5_000;
const firstHoldMs = 60_000;
const maxHoldMs = 30 * 60_000;
const firstRestMs = 2_000;
const maxRestMs = 5 * 60_000;

export function newConcurrencyState(shape: DestinationShape): ConcurrencyState {
  return {
    limit: Math.min(shape.startWith, shape.connections),
    ceiling: null,
    nextStartAt: 0,
    restUntil: 0,
    restMs: firstRestMs,
    failures: 0,
    circuit: null,
    busySince: null,
    busyAt: 0,
    answeredAt: 0,
  };
}

/** How many deliveries may be under way at `now`, regardless of the rate. */
export function allowed(state: ConcurrencyState, now: number): number {
  const { circuit } = state;
  if (!circuit) return state.limit;
  return circuit.probing || now < circuit.nextProbeAt ? 0 : 1;
}

/** Whether a retry that has fallen due may probe an open circuit. */
export function mayProbe({ circuit }: ConcurrencyState, now: number): boolean {
  return circuit !== null && !circuit.probing && now >= circuit.failedAt + betweenProbesMs;
}

/** `perMinute`: this node's share of the rate; null if there is none. */
export function afterStart(state: ConcurrencyState, perMinute: number | null, now: number): ConcurrencyState {
  const { circuit } = state;
  const nextStartAt =
    perMinute === null ? state.nextStartAt : Math.max(now, state.nextStartAt) + Math.ceil(60_000 / perMinute);
  return { ...state, nextStartAt, circuit: circuit && { ...circuit, probing: true } };
}

/** The evidence of an attempt. `reason`: the reply, or the failure. */
export interface Observation {
  signal: Signal;
  /** Deliveries under way there, including this one. */
  inUse: number;
  /** All that is allowed is in use. */
  isFull: boolean;
  reason: string;
}

export function afterAttempt(
  state: ConcurrencyState,
  shape: DestinationShape,
  observation: Observation,
  now: number,
): ConcurrencyState {
  if (observation.signal === 'dead') return afterFailure(state, observation.reason, now);
  const answered = afterAnswer(state, shape, observation.signal === null ? state.answeredAt : now);
  if (observation.signal === 'throttled') return afterThrottled(answered, observation.inUse, now);
  return observation.signal === 'working' ? afterSuccess(answered, shape, observation.isFull, now) : answered;
}

function afterAnswer(state: ConcurrencyState, shape: DestinationShape, answeredAt: number): ConcurrencyState {
  const limit = state.circuit ? newConcurrencyState(shape).limit : state.limit;
  return { ...state, limit, failures: 0, circuit: null, answeredAt };
}

function afterFailure(state: ConcurrencyState, reason: string, now: number): ConcurrencyState {
  const failures = state.failures + 1;
  const { circuit } = state;
  if (!circuit) {
    if (failures < failuresToOpen) return { ...state, failures };
    const opened = { since: now, failures, waitMs: firstProbeMs, probing: false, failedAt: now, reason };
    return { ...state, failures, circuit: { ...opened, nextProbeAt: now + firstProbeMs } };
  }
  // Attempts that were under way when the circuit opened prove nothing new; a failed probe does.
  const waitMs = circuit.probing ? Math.min(circuit.waitMs * 2, maxProbeMs) : circuit.waitMs;
  return {
    ...state,
    failures,
    circuit: {
      ...circuit,
      failures,
      waitMs,
      probing: false,
      failedAt: now,
      nextProbeAt: now + waitMs,
      reason,
    },
  };
}

function afterThrottled(state: ConcurrencyState, inUse: number, now: number): ConcurrencyState {
  const { ceiling } = state;
  const wasGood = ceiling !== null && inUse > 1 && inUse <= ceiling.limit;
  // Now and then the host still counts a closed connection in addition to its replacement.
  if (wasGood && now > state.busyAt + chanceMs) return { ...state, busyAt: now };
  const wasAboveCeiling = ceiling !== null && state.limit > ceiling.limit;
  const holdMs = wasAboveCeiling ? Math.min(ceiling.holdMs * 2, maxHoldMs) : (ceiling?.holdMs ?? firstHoldMs);
  const limit = Math.max(1, Math.min(state.limit, inUse - 1));
  const throttled = {
    ...state,
    limit,
    ceiling: { limit, until: now + holdMs, holdMs },
    busyAt: now,
    busySince: state.busySince ?? now,
  };
  if (inUse > 1) return throttled;
  const restUntil = now + state.restMs;
  return {
    ...throttled,
    nextStartAt: Math.max(state.nextStartAt, restUntil),
    restUntil,
    restMs: Math.min(state.restMs * 2, maxRestMs),
  };
}

function afterSuccess(
  state: ConcurrencyState,
  shape: DestinationShape,
  isFull: boolean,
  now: number,
): ConcurrencyState {
  const well = state.restMs === firstRestMs ? state : { ...state, restMs: firstRestMs };
  // A limit that is not fully used proves nothing.
  if (!isFull || state.limit >= shape.connections) return well;
  const { ceiling } = state;
  if (ceiling === null) return { ...well, limit: state.limit + 1 };
  if (now < ceiling.until) return well;
  // This number has worked for long enough: try one more.
  const limit = state.limit + 1;
  const isAtFullLimit = limit >= shape.connections;
  return {
    ...well,
    limit,
    ceiling: isAtFullLimit ? null : { ...ceiling, limit: state.limit, until: now + ceiling.holdMs },
    busySince: isAtFullLimit ? null : state.busySince,
  };
}
