/**
 * What nodes tell each other of a destination, and what a gauge makes of what it is told: pure functions.
 *
 * A gauge is of all nodes together; each has its part of it (share.ts). Of a slowing down the last is what counts, and
 * since then the largest limit that went well. A circuit that one has opened is open for all, unless something has
 * answered here since; the next probe is due when the last that failed says; and one answer anywhere closes it.
 */
import type { DestinationShape } from '../mail/destination-shape.ts';
import { type Circuit, type ConcurrencyState, newConcurrencyState } from './shaping.ts';

/** What a node says of a destination. */
export interface PeerState
  extends Pick<ConcurrencyState, 'limit' | 'ceiling' | 'restUntil' | 'restMs' | 'busySince' | 'busyAt'> {
  /** Connections that it has there, idle ones too, or deliveries under way, whichever are more. */
  open: number;
  circuit: Omit<Circuit, 'probing'> | null;
  answeredAt: number;
}

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
