/**
 * How much a destination is given at once, learned from how it goes: pure functions from one gauge to the next.
 *
 *   limit     begins low and grows by one with each success while all of it is in use; when the other side asks us to
 *             slow down it falls below what was in use, and stays there for a while: 1 min, then twice as long each
 *             time that trying one more proves wrong, at most 30 min; one refusal of what was taken before is chance
 *   rest      asked to slow down with nothing else in use, we wait before the next: 2 s, doubling to 5 min
 *   circuit   opens after five failures to reach anything there in a row; then one delivery at a time probes: after
 *             15 s, doubling to 5 min, and whenever a delivery falls due of its own. Any answer closes it.
 *   pace      where the shape has a rate, starts are spread evenly over the minute
 *
 * Where several nodes send, a gauge is of all of them together (peer-state.ts), and each has its part of it (share.ts).
 * The clock and the shape are parameters; nothing here knows of sockets or deliveries.
 */
import type { Signal } from '../glossary.ts';
import type { DestinationShape } from '../mail/destination-shape.ts';

export interface ConcurrencyState {
  /** Deliveries at once that are allowed now; at least 1. */
  limit: number;
  /** How many are known to be taken where more were not, and until when more are not tried again. */
  ceiling: { limit: number; until: number; holdMs: number } | null;
  /** No start before this time: the pace of the shape, or a rest. */
  nextStartAt: number;
  restUntil: number;
  restMs: number;
  /** Failures to reach anything, in a row. */
  failures: number;
  circuit: Circuit | null;
  /** Since when the other side has been asking us to slow down, and when it last did. */
  busySince: number | null;
  busyAt: number;
  /** When something there last answered. */
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
const longestProbeMs = 5 * 60_000;
/**
 * A retry that falls due may probe at once, unless something else has just failed there: in a long queue one falls due
 * every moment. No longer than the first wait of the retry schedule, so that a mail alone keeps to it.
 */
const betweenProbesMs = 30_000;
/** A refusal of what was taken before, alone in so long a time, is chance. */
const chanceMs = 5_000;
const firstHoldMs = 60_000;
const longestHoldMs = 30 * 60_000;
const firstRestMs = 2_000;
const longestRestMs = 5 * 60_000;

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

/** How many may be under way at `now`, whatever the pace. */
export function allowed(state: ConcurrencyState, now: number): number {
  const { circuit } = state;
  if (!circuit) return state.limit;
  return circuit.probing || now < circuit.nextProbeAt ? 0 : 1;
}

/** Whether a delivery that has fallen due of its own may probe an open circuit. */
export function mayProbe({ circuit }: ConcurrencyState, now: number): boolean {
  return circuit !== null && !circuit.probing && now >= circuit.failedAt + betweenProbesMs;
}

/** `perMinute`: the rate that holds; null: none. */
export function afterStart(state: ConcurrencyState, perMinute: number | null, now: number): ConcurrencyState {
  const { circuit } = state;
  const nextStartAt =
    perMinute === null ? state.nextStartAt : Math.max(now, state.nextStartAt) + Math.ceil(60_000 / perMinute);
  return { ...state, nextStartAt, circuit: circuit && { ...circuit, probing: true } };
}

/** What an attempt showed; `reason`: the trouble, if any. */
export interface Observation {
  signal: Signal;
  /** Deliveries under way there, this one included. */
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
  if (observation.signal === 'busy') return afterBusy(answered, observation.inUse, now);
  return observation.signal === 'well' ? afterSuccess(answered, shape, observation.isFull, now) : answered;
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
  // What was under way when it opened says nothing new; a probe's failure does.
  const waitMs = circuit.probing ? Math.min(circuit.waitMs * 2, longestProbeMs) : circuit.waitMs;
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

function afterBusy(state: ConcurrencyState, inUse: number, now: number): ConcurrencyState {
  const { ceiling } = state;
  const wasGood = ceiling !== null && inUse > 1 && inUse <= ceiling.limit;
  // A connection that ends and the one that follows it may be counted together over there, once in a while.
  if (wasGood && now > state.busyAt + chanceMs) return { ...state, busyAt: now };
  const wasTrial = ceiling !== null && state.limit > ceiling.limit;
  const holdMs = wasTrial ? Math.min(ceiling.holdMs * 2, longestHoldMs) : (ceiling?.holdMs ?? firstHoldMs);
  const limit = Math.max(1, Math.min(state.limit, inUse - 1));
  const busy = {
    ...state,
    limit,
    ceiling: { limit, until: now + holdMs, holdMs },
    busyAt: now,
    busySince: state.busySince ?? now,
  };
  if (inUse > 1) return busy;
  const restUntil = now + state.restMs;
  return {
    ...busy,
    nextStartAt: Math.max(state.nextStartAt, restUntil),
    restUntil,
    restMs: Math.min(state.restMs * 2, longestRestMs),
  };
}

function afterSuccess(
  state: ConcurrencyState,
  shape: DestinationShape,
  isFull: boolean,
  now: number,
): ConcurrencyState {
  const well = state.restMs === firstRestMs ? state : { ...state, restMs: firstRestMs };
  // What is not in use proves nothing.
  if (!isFull || state.limit >= shape.connections) return well;
  const { ceiling } = state;
  if (ceiling === null) return { ...well, limit: state.limit + 1 };
  if (now < ceiling.until) return well;
  // It has been calm at this many for long enough: one more is tried.
  const limit = state.limit + 1;
  const calm = limit >= shape.connections;
  return {
    ...well,
    limit,
    ceiling: calm ? null : { ...ceiling, limit: state.limit, until: now + ceiling.holdMs },
    busySince: calm ? null : state.busySince,
  };
}
