/**
 * An attempt becomes a move in the table of states (queue/README.md): the delivery's new state, when the queue looks
 * at it again, and the event that tells of it. A pure function; db/queue/outcomes.ts writes what it says.
 */
import type { Attempt, Delivery, DeliveryStatus, EventType, Fault } from '../glossary.ts';

export interface Transition {
  delivery: Delivery;
  attempt: Attempt;
  status: DeliveryStatus;
  /** The next attempt; null where the state is final. */
  dueAt: number | null;
  deliveredAt: number | null;
  bounce: Bounce | null;
  event: { type: EventType; data: Record<string, unknown> };
}

export interface Bounce {
  type: 'hard' | 'soft';
  category: string;
  fault: Fault;
  diagnostic: string;
}

/** `nextAt`: the next attempt's time, or null where the mail has become too old for one. */
export function transition(delivery: Delivery, attempt: Attempt, nextAt: number | null): Transition {
  const { verdict, reply, mx, tls } = attempt;
  const base = { delivery, attempt, dueAt: null, deliveredAt: null, bounce: null };
  const data = { attempt: delivery.attempts + 1, response: reply, mx, tls };
  if (verdict.outcome === 'delivered') {
    return {
      ...base,
      status: 'delivered',
      deliveredAt: attempt.endedAt,
      event: { type: 'email.delivered', data },
    };
  }
  const why = { category: verdict.category, fault: verdict.fault, diagnostic: verdict.diagnostic };
  if (verdict.outcome === 'bounced') {
    const bounce = { type: verdict.bounce, ...why } as Bounce;
    return {
      ...base,
      status: 'bounced',
      bounce,
      event: { type: 'email.bounced', data: { ...data, bounce } },
    };
  }
  if (nextAt === null) {
    return { ...base, status: 'expired', event: { type: 'email.expired', data: { ...data, ...why } } };
  }
  const { origin, possibleDuplicate } = verdict;
  const nextAttemptAt = new Date(nextAt).toISOString();
  return {
    ...base,
    status: 'deferred',
    dueAt: nextAt,
    event: { type: 'email.deferred', data: { ...data, ...why, origin, possibleDuplicate, nextAttemptAt } },
  };
}

/**
 * Why the organization writes to this address no more, or null where it may. Only a hard bounce of the recipient's own
 * fault counts, and of those only what the policy names: a block of our own address says nothing of the recipient.
 */
export function suppressionReason(
  { bounce }: Pick<Transition, 'bounce'>,
  suppressAfter: readonly string[],
): string | null {
  if (bounce?.type !== 'hard' || bounce.fault !== 'recipient') return null;
  return suppressAfter.includes(bounce.category) ? `hard bounce: ${bounce.category}` : null;
}
