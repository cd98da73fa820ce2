/**
 * The state that nodes publish about a destination, and how a node merges it into its own concurrency state: pure functions.
 *
 * The state describes all nodes together, and each has its share of the limit (share.ts). The latest request to slow down
 * counts, and since then the largest limit that worked. A circuit that one node has opened is open for all, unless this
 * node has had an answer since. The next probe is due when the node that failed last says; an answer to any node closes
 * the circuit for all.
 */
import type { DestinationShape } from '#platform/values/destination-shape.ts';
import { type Circuit, type ConcurrencyState, newConcurrencyState } from './shaping.ts';

/** The published state of a destination, as JSON. Nodes of other versions read it, so its members keep their names. */
export interface PeerState
  extends Pick<ConcurrencyState, 'limit' | 'ceiling' | 'restUntil' | 'restMs' | 'busySince' | 'busyAt'> {
  /** Its connections there, idle ones included, or its deliveries under way, whichever are more. */
  open: number;
  circuit: Omit<Circuit, 'probing'> | null;
  answeredAt: number;
}

/** The state of a destination that this node has nothing to do with now: it changes nothing. */
export const restingState: PeerState = {
  open: 0,
  limit: 1,
  ceiling: null,
  restUntil: 0,
  restMs: 0,
  busySince: null,
  busyAt: 0,
  circuit: null,
  answeredAt: 0,
};

export function toPeerState(state: ConcurrencyState, open: number): PeerState {
  const { limit, ceiling, restUntil, restMs, busySince, busyAt, answeredAt } = state;
  if (!state.circuit) {
    return { open, limit, ceiling, restUntil, restMs, busySince, busyAt, circuit: null, answeredAt };
  }
  const { probing, ...circuit } = state.circuit;
  return { open, limit, ceiling, restUntil, restMs, busySince, busyAt, circuit, answeredAt };
}

export function mergePeerState(
  state: ConcurrencyState,
  shape: DestinationShape,
  peer: PeerState,
): ConcurrencyState {
  return mergeCircuit(mergeLimit(state, shape, peer), shape, peer);
}

function mergeLimit(state: ConcurrencyState, shape: DestinationShape, peer: PeerState): ConcurrencyState {
  const nextStartAt = Math.max(state.nextStartAt, peer.restUntil);
  const merged = nextStartAt === state.nextStartAt ? state : { ...state, nextStartAt };
  const { ceiling, restMs, busySince, busyAt } = peer;
  if (busyAt > state.busyAt) {
    const limit = Math.min(state.limit, peer.limit);
    return { ...merged, limit, ceiling, restMs: Math.max(state.restMs, restMs), busySince, busyAt };
  }
  const hasGrown = busyAt === state.busyAt && peer.limit > state.limit && !peer.circuit && !state.circuit;
  if (!hasGrown) return merged;
  return { ...merged, limit: Math.min(peer.limit, shape.connections), ceiling, busySince };
}

function mergeCircuit(
  state: ConcurrencyState,
  shape: DestinationShape,
  { circuit, answeredAt }: PeerState,
): ConcurrencyState {
  if (circuit && circuit.failedAt > state.answeredAt && isLater(circuit, state.circuit)) {
    const probing = state.circuit?.probing ?? false;
    return { ...state, failures: circuit.failures, circuit: { ...circuit, probing } };
  }
  if (!state.circuit || answeredAt <= state.circuit.failedAt) return state;
  return { ...state, limit: newConcurrencyState(shape).limit, failures: 0, circuit: null, answeredAt };
}

function isLater(theirs: Omit<Circuit, 'probing'>, own: Circuit | null): boolean {
  if (!own || theirs.failedAt > own.failedAt) return true;
  return theirs.failedAt === own.failedAt && theirs.failures > own.failures;
}
