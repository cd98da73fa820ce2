/** The copies of a message, one for each recipient, as patches of the first. */

import type { Tracker } from '#mail/compose/tracking/html-tracking.ts';
import { patchOf } from '#platform/base/byte-patch.ts';

interface Copies {
  /**
   * One message for all recipients; or, if there is a base, a patch of it (platform/base/byte-patch.ts) for each recipient, in
   * order.
   */
  messages: Buffer[];
  base: Buffer | null;
}

/** The messages of a send, signed. */
export interface Composed extends Copies {
  /** The base, or without one the message, as it is stored. */
  packed: Buffer;
  /** Without angle brackets. */
  messageId: string;
  /** The number of tracked links if the mail has more than are tracked; otherwise null. */
  trackedLinks: number | null;
}

export type Unpacked = Omit<Composed, 'packed'>;

/** Each copy becomes a patch before the next one is made, because copies may be large. */
export function copiesFor(trackers: Tracker[], copyFor: (tracker: Tracker) => Buffer): Copies {
  const base = copyFor(trackers[0]!);
  if (trackers.length === 1) return { messages: [base], base: null };
  const messages = trackers.map((tracker, index) => patchOf(base, index === 0 ? base : copyFor(tracker)));
  return { messages, base };
}
