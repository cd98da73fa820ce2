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
  /** `postern move` has marked the SQLite database as being moved; the target is still empty. */
  | 'moving'
  /** A batch of rows is in the target; the transaction is still open. */
  | 'copying'
  /** The batch is committed. */
  | 'copied'
  /** Both databases hold the same rows; neither is marked yet. */
  | 'checked'
  /** The SQLite database is marked as moved; the target is not marked yet. */
  | 'noted';

const failpoints = channel('postern:step');

export function failpoint(name: FailpointName): void {
  failpoints.publish(name);
}
