/** Texts about actions on the queue (mail/queue/rows/apply-queue-action.ts) for the command line and the dashboard. */
import { changeable, type QueueAction, type QueueActionResult } from '#mail/queue/rows/apply-queue-action.ts';

export const actionWords: Record<QueueAction, { description: string; past: string }> = {
  retry: {
    description: 'Retry deferred mail now, without waiting for its next attempt.',
    past: 'made due now',
  },
  hold: {
    description: 'Hold mail until it is released; the time on hold does not count toward its maximum age.',
    past: 'held',
  },
  release: { description: 'Release held mail; it is due at once.', past: 'released' },
  cancel: {
    description: 'Cancel mail: no further attempt is made, and mail that was never attempted is refunded.',
    past: 'canceled',
  },
};

export function beingSent(count: number): string {
  return count === 1 ? '1 is being sent now' : `${count} are being sent now`;
}

/** The matching mail that the action does not apply to; null if no mail matches. */
export function leftAlone(action: QueueAction, left: QueueActionResult['left']): string | null {
  const others = Object.entries(left).map(([status, count]) => `${count} ${status}`);
  if (others.length === 0) return null;
  return `the matching mail is ${others.join(' and ')}; only ${changeable[action].join(' or ')} mail can be`;
}
