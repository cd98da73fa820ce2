/** The condition of mx.invalid, or of another destination, by what is stored about it. */
import type { DestinationState, DestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import { type Condition, conditionsAt, named, type Subject } from '#operate/condition/condition.ts';

const none: DestinationStatuses = {
  orders: [],
  states: new Map(),
  silent: [],
  missingPools: [],
  isServed: true,
};

interface Stored {
  subject?: Partial<Subject>;
  statuses?: Partial<DestinationStatuses>;
  state?: Partial<DestinationState>;
}

export function conditionOf(now: number, { subject, statuses, state }: Stored = {}): Condition {
  const of = { ...named('mx.invalid', 0), domains: ['there.invalid'], ...subject };
  const atRest = { connections: 0, limit: 5, waiting: 0, circuit: null, busySince: null };
  const states = new Map(
    state ? [[of.destination, { ...atRest, lastReply: null, lastReplyAt: null, ...state }]] : [],
  );
  return conditionsAt({ ...none, states, ...statuses }, now)(of);
}
