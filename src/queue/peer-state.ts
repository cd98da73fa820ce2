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

export function toPeerState(gauge: ConcurrencyState, open: number): PeerState {
  const { limit, ceiling, restUntil, restMs, busySince, busyAt, answeredAt } = gauge;
  if (!gauge.circuit) {
    return { open, limit, ceiling, restUntil, restMs, busySince, busyAt, circuit: null, answeredAt };
  }
  const { probing, ...circuit } = gauge.circuit;
  return { open, limit, ceiling, restUntil, restMs, busySince, busyAt, circuit, answeredAt };
}

export function mergePeerState(
  gauge: ConcurrencyState,
  shape: DestinationShape,
  told: PeerState,
): ConcurrencyState {
  return heardCircuit(heardLimit(gauge, shape, told), shape, told);
}

function heardLimit(gauge: ConcurrencyState, shape: DestinationShape, told: PeerState): ConcurrencyState {
  const nextStartAt = Math.max(gauge.nextStartAt, told.restUntil);
  const heard = nextStartAt === gauge.nextStartAt ? gauge : { ...gauge, nextStartAt };
  const { ceiling, restMs, busySince, busyAt } = told;
  if (busyAt > gauge.busyAt) {
    const limit = Math.min(gauge.limit, told.limit);
    return { ...heard, limit, ceiling, restMs: Math.max(gauge.restMs, restMs), busySince, busyAt };
  }
  const hasGrown = busyAt === gauge.busyAt && told.limit > gauge.limit && !told.circuit && !gauge.circuit;
  if (!hasGrown) return heard;
  return { ...heard, limit: Math.min(told.limit, shape.connections), ceiling, busySince };
}

function heardCircuit(
  gauge: ConcurrencyState,
  shape: DestinationShape,
  { circuit, answeredAt }: PeerState,
): ConcurrencyState {
  if (circuit && circuit.failedAt > gauge.answeredAt && isLater(circuit, gauge.circuit)) {
    const probing = gauge.circuit?.probing ?? false;
    return { ...gauge, failures: circuit.failures, circuit: { ...circuit, probing } };
  }
  if (!gauge.circuit || answeredAt <= gauge.circuit.failedAt) return gauge;
  return { ...gauge, limit: newConcurrencyState(shape).limit, failures: 0, circuit: null, answeredAt };
}

function isLater(theirs: Omit<Circuit, 'probing'>, own: Circuit | null): boolean {
  if (!own || theirs.failedAt > own.failedAt) return true;
  return theirs.failedAt === own.failedAt && theirs.failures > own.failures;
}
