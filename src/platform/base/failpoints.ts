/**
 * Named steps of accepting, recording and moving, published on the diagnostics channel `postern:step`. Crash tests kill the
 * process at them (test/lab/kill-at.ts). In production nothing subscribes, and publishing costs nothing.
 */
import { channel } from 'node:diagnostics_channel';

export type FailpointName =
  /** The message is composed and signed; nothing is written yet. */
  | 'composed'
  /** All rows of the send are written; the transaction is still open. */
  | 'accepting'
  /** The send is committed: from here on it must be delivered. */
  | 'accepted'
  /** The 200 response has been written to the socket. */
  | 'answered'
  /** An attempt has ended; nothing of its outcome is written yet. */
  | 'attempted'
  /** The delivery has its new state; the transaction is still open. */
  | 'recording'
  /** The outcome is committed. */
  | 'recorded'
  /** A received mail is read and judged; nothing is written yet. */
  | 'judged'
  /** All rows of a received mail are written; the transaction is still open. */
  | 'receiving'
  /** The received mail is committed: from here on it must be in the feed. */
  | 'received'
  /** `postern move` has written a batch of rows; the transaction is still open. */
  | 'copying'
  /** All rows are in the target, and SQLite is marked as being moved; the transaction is still open. */
  | 'moving'
  /** The target is committed; SQLite is not marked as moved yet. */
  | 'moved';

const failpoints = channel('postern:step');

export function failpoint(name: FailpointName): void {
  failpoints.publish(name);
}
