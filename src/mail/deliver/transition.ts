/**
 * The transition that follows from an attempt (the table of states is in mail/queue/README.md): the delivery's new state, the
 * time of its next attempt, and the event. A pure function; mail/queue/rows/outcomes.ts writes the result.
 */
import type { Attempt, Bounce, Delivery, DeliveryStatus, EventType } from '#platform/values/glossary.ts';

export interface Transition {
  delivery: Delivery;
  attempt: Attempt;
  /** Made so far. */
  attempts: number;
  status: DeliveryStatus;
  /** The time of the next attempt; null if the state is final. */
  dueAt: number | null;
  deliveredAt: number | null;
  bounce: Bounce | null;
  event: { type: EventType; data: Record<string, unknown> };
}

/** Whether anything was tried: mail that was withheld until its end, or that a rule bounces, was not. */
export const wasTried = ({ verdict }: Attempt) => verdict.category !== 'withheld';

/** `nextAt`: the time of the next attempt, or null if the mail is too old for one. */
export function transition(delivery: Delivery, attempt: Attempt, nextAt: number | null): Transition {
  const { verdict, reply, mx, tls } = attempt;
  const attempts = delivery.attempts + Number(wasTried(attempt));
  const base = { delivery, attempt, attempts, dueAt: null, deliveredAt: null, bounce: null };
  const data = { attempt: attempts, response: reply, mx, tls };
  if (verdict.outcome === 'delivered') {
    const event = { type: 'email.delivered', data } as const;
    return { ...base, status: 'delivered', deliveredAt: attempt.endedAt, event };
  }
  const cause = { category: verdict.category, fault: verdict.fault, diagnostic: verdict.diagnostic };
  if (verdict.outcome === 'bounced') {
    const bounce = { type: verdict.bounce, ...cause } as Bounce;
    return {
      ...base,
      status: 'bounced',
      bounce,
      event: { type: 'email.bounced', data: { ...data, bounce } },
    };
  }
  if (nextAt === null) {
    const reason = delivery.hasDeadline ? 'deadline' : 'maximum_age';
    return {
      ...base,
      status: 'expired',
      event: { type: 'email.expired', data: { ...data, ...cause, reason } },
    };
  }
  const { origin, possibleDuplicate } = verdict;
  const nextAttemptAt = new Date(nextAt).toISOString();
  return {
    ...base,
    status: 'deferred',
    dueAt: nextAt,
    event: { type: 'email.deferred', data: { ...data, ...cause, origin, possibleDuplicate, nextAttemptAt } },
  };
}

/** Categories of soft bounces that are about the mailbox, not about one mail. */
const mailboxCategories = new Set(['mailbox_full', 'mailbox_disabled', 'unknown_user', 'unavailable']);

/** Whether the bounce counts towards the suppression of an address that keeps bouncing (accounts/rows/soft-bounces.ts). */
export function isSoftForMailbox(bounce: Bounce | null): bounce is Bounce {
  return bounce?.type === 'soft' && bounce.fault === 'recipient' && mailboxCategories.has(bounce.category);
}

/**
 * The category of a failure that counts like that, or null. Most hosts refuse mail to a full mailbox with a 4xx, so that it
 * expires instead of bouncing.
 */
export function softMailboxCategory({
  status,
  bounce,
  attempt: { verdict },
}: Pick<Transition, 'status' | 'bounce' | 'attempt'>): string | null {
  if (status === 'expired') return verdict.category === 'mailbox_full' ? verdict.category : null;
  return isSoftForMailbox(bounce) ? bounce.category : null;
}

/**
 * The reason to suppress the address for this organization, or null. Only a hard bounce that is the recipient's fault
 * counts, and only in the categories that the policy names: a block of our own address says nothing about the recipient.
 */
export function suppressionReason(
  { bounce }: Pick<Transition, 'bounce'>,
  suppressAfter: readonly string[],
): string | null {
  if (bounce?.type !== 'hard' || bounce.fault !== 'recipient') return null;
  return suppressAfter.includes(bounce.category) ? `hard bounce: ${bounce.category}` : null;
}
