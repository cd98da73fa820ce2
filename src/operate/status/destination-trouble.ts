/** What is wrong at a destination, by its published state alone: a pure function, so that it is known before mail is counted. */
import type { DestinationState } from '../../db/queue/destination-status-rows.ts';
import { isThrottled } from '../explain/destination-status.ts';
import type { NeedCause } from './need.ts';

export interface Trouble {
  destination: string;
  state: DestinationState;
  cause: NeedCause;
  since: number;
  reply: string | null;
}

/** Attempts that take longer on average are slow: the usual host answers within two seconds. */
const slowMs = 5_000;

export function troubleOf(destination: string, state: DestinationState, now: number): Trouble | null {
  const { problem, circuit } = state;
  const of = (cause: NeedCause, since: number, reply: string | null): Trouble => ({
    destination,
    state,
    cause,
    since,
    reply,
  });
  if (problem?.cause === 'blocklisted') return of('blocklisted', problem.since, problem.reply);
  if (circuit) {
    const isSpecific = problem && problem.cause !== 'unreachable';
    const since = Math.min(circuit.since, problem?.since ?? circuit.since);
    return of(isSpecific ? problem.cause : 'circuit_open', since, problem?.reply ?? circuit.reason);
  }
  if (isThrottled(state, state.waiting > 0, now)) {
    const reply = state.busyReply ?? problem?.reply ?? state.lastReply;
    return of('throttled', state.busySince ?? problem!.since, reply);
  }
  if (problem) return of(problem.cause, problem.since, problem.reply);
  const { accepted } = state;
  const isSlow = accepted && accepted.count > 0 && accepted.ms / accepted.count > slowMs;
  return isSlow && state.connections >= state.limit ? of('slow', accepted.since, null) : null;
}
