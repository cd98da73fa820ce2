/**
 * What a returned mail makes of its delivery. A pure function; db/bounces/returned-mail.ts writes what it says.
 *
 *   state                            | a bounce            | a complaint
 *   ---------------------------------+---------------------+----------------------------------------------------
 *   delivered                        | bounced             | complained
 *   deferred, and may have arrived   | bounced             | complained: its next attempt would be one too many
 *   sending                          | wait: its outcome   | wait
 *                                    | is about to be known|
 *   bounced, expired                 | nothing             | complained: somebody had it after all
 *   queued, deferred, held, canceled | nothing: doubt      | nothing: nobody can have had it
 *   complained                       | nothing             | nothing
 *   suppressed, insufficient_credit  | nothing             | nothing
 *
 * "May have arrived": the connection of an attempt was lost after the message and before its reply (possibleDuplicate).
 * A mail that waits is otherwise left to the queue, whose next attempt will hear the host's own word. What makes no
 * move makes no event, so that a bounce which comes twice is one bounce.
 */
import type { DeliveryStatus, EventType } from '../glossary.ts';
import type { Bounce } from '../record/transition.ts';
import type { Complaint, Failure } from './parse/parse-result.ts';

export interface ReturnedTransition {
  status: DeliveryStatus;
  /** Null: the delivery keeps what it has. */
  bounce: Bounce | null;
  event: { type: EventType; data: Record<string, unknown> };
}

export interface DeliveryBefore {
  status: DeliveryStatus;
  /** Made so far. */
  attempts: number;
  mayHaveArrived: boolean;
}

/** Null: it changes nothing; wait: it will be known shortly what it changes. */
export function transitionOnReturn(
  standing: DeliveryBefore,
  reading: Failure | Complaint,
): ReturnedTransition | 'wait' | null {
  if (standing.status === 'sending') return 'wait';
  return reading.is === 'failed' ? afterFailure(standing, reading) : afterComplaint(standing, reading);
}

function wasTaken({ status, mayHaveArrived }: DeliveryBefore): boolean {
  return status === 'delivered' || (status === 'deferred' && mayHaveArrived);
}

function afterFailure(
  standing: DeliveryBefore,
  { bounce, reportedBy, format }: Failure,
): ReturnedTransition | null {
  if (!wasTaken(standing)) return null;
  // As the event of a bounce in a session, but for what only a session has.
  const session = { attempt: standing.attempts, response: null, mx: null, tls: null };
  const data = { ...session, bounce, returned: { reportedBy, format } };
  return { status: 'bounced', bounce, event: { type: 'email.bounced', data } };
}

function afterComplaint(
  standing: DeliveryBefore,
  { feedbackType, reportedBy }: Complaint,
): ReturnedTransition | null {
  const isKnownLost = standing.status === 'bounced' || standing.status === 'expired';
  if (!wasTaken(standing) && !isKnownLost) return null;
  return {
    status: 'complained',
    bounce: null,
    event: { type: 'email.complained', data: { feedbackType, reportedBy } },
  };
}
