/** The words of orders to the queue (db/queue/apply-queue-action.ts), as the command line and the dashboard say them. */
import { movable, type QueueAction, type QueueActionResult } from '../../db/queue/apply-queue-action.ts';
import { asHostName } from '../../settings/grammar.ts';

export const actionWords: Record<QueueAction, { is: string; did: string }> = {
  retry: { is: 'Retry deferred mail now, without waiting for its next attempt.', did: 'made due now' },
  hold: {
    is: 'Hold mail until it is released; the time on hold does not count toward its expiry.',
    did: 'held',
  },
  release: { is: 'Release held mail; it is due at once.', did: 'released' },
  cancel: { is: 'Cancel mail: no further attempt is made.', did: 'canceled' },
};

export function beingSent(count: number): string {
  return count === 1 ? '1 is being sent now' : `${count} are being sent now`;
}

/** What matches but is not what the order is for; null: nothing does. */
export function leftAlone(order: QueueAction, left: QueueActionResult['left']): string | null {
  const others = Object.entries(left).map(([status, count]) => `${count} ${status}`);
  if (others.length === 0) return null;
  return `the matching mail is ${others.join(' and ')}; only ${movable[order].join(' or ')} mail can be`;
}

/** A recipient domain, or a destination's name: its hosts parted by commas, or what a shaping rule calls it. */
export function readDestination(text: string): string | null {
  const names = text.split(',').map((each) => asHostName(each.trim()));
  return names.includes(null) ? null : [...new Set(names)].sort().join(',');
}
