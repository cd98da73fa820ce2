/**
 * The state change that a returned mail causes. A pure function; mail/returned/rows/record-bounces.ts applies it.
 *
 *   state                            | a bounce            | a complaint
 *   ---------------------------------+---------------------+----------------------------------------------------
 *   delivered                        | bounced             | complained
 *   deferred, and may have arrived   | bounced             | complained: the recipient has it, so no retry
 *   sending                          | wait for the outcome| wait
 *   bounced, expired                 | nothing             | complained: it was delivered after all
 *   queued, deferred, held, canceled | nothing: not proven | nothing: it cannot have been delivered
 *   complained                       | nothing             | nothing
 *   suppressed, insufficient_credit  | nothing             | nothing
 *
 * A bounce about another address, which the recipient's server passed a delivered mail on to, is an event and changes no state.
 *
 * "May have arrived": an attempt lost its connection after the message and before the reply (possibleDuplicate). Otherwise a
 * waiting delivery is left to the queue, whose next attempt gets the reply of the host itself. Without a state change there
 * is no event, so a bounce that arrives twice counts once.
 */

import type { Bounce, DeliveryStatus, EventType } from '#platform/values/glossary.ts';
import { failureOf } from './failed-recipient.ts';
import type { Complaint, ReportedFailure } from './parse-result.ts';

export interface BounceTransition {
  status: DeliveryStatus;
  /** Null: the bounce of the delivery does not change. */
  bounce: Bounce | null;
  event: { type: EventType; data: Record<string, unknown> };
}

export interface DeliveryBefore {
  status: DeliveryStatus;
  recipient: string;
  /** Made so far. */
  attempts: number;
  mayHaveArrived: boolean;
}

/** Null: no change. `wait`: an attempt is in progress; ask again shortly. */
export function transitionOnBounce(
  delivery: DeliveryBefore,
  reading: ReportedFailure | Complaint,
): BounceTransition | 'wait' | null {
  if (delivery.status === 'sending') return 'wait';
  return reading.kind === 'failed' ? afterFailure(delivery, reading) : afterComplaint(delivery, reading);
}

function wasTaken({ status, mayHaveArrived }: DeliveryBefore): boolean {
  return status === 'delivered' || (status === 'deferred' && mayHaveArrived);
}

function afterFailure(delivery: DeliveryBefore, reading: ReportedFailure): BounceTransition | null {
  if (!wasTaken(delivery)) return null;
  const own = failureOf(delivery.recipient, reading);
  if (own === null && delivery.status !== 'delivered') return null;
  const { bounce, reportedBy, format, recipient } = own ?? reading;
  // The same members as for a bounce during a session; those that only a session has are null.
  const session = { attempt: delivery.attempts, response: null, mx: null, tls: null };
  const data = { ...session, bounce, returned: { reportedBy, format, recipient } };
  return own
    ? { status: 'bounced', bounce, event: { type: 'email.bounced', data } }
    : { status: 'delivered', bounce: null, event: { type: 'email.forward_failed', data } };
}

function afterComplaint(
  delivery: DeliveryBefore,
  { feedbackType, reportedBy }: Complaint,
): BounceTransition | null {
  const isKnownLost = delivery.status === 'bounced' || delivery.status === 'expired';
  if (!wasTaken(delivery) && !isKnownLost) return null;
  return {
    status: 'complained',
    bounce: null,
    event: { type: 'email.complained', data: { feedbackType, reportedBy } },
  };
}
