/**
 * The named steps of accept, of record and of a move, on the diagnostics channel `postern:step`: where a crash test ends the
 * process (test/helpers/kill-at.ts). Nobody listens in production, and then telling costs nothing.
 */
import { channel } from 'node:diagnostics_channel';

export type FailpointName =
  /** The message is composed and signed; nothing is written. */
  | 'composed'
  /** All rows of the send are written, in a transaction that is open. */
  | 'accepting'
  /** The send is committed: a promise. */
  | 'accepted'
  /** The caller's 200 has been handed to the system. */
  | 'answered'
  /** An attempt has ended; of its outcome nothing is written. */
  | 'attempted'
  /** The delivery has its new state, in a transaction that is open. */
  | 'recording'
  /** The outcome is committed. */
  | 'recorded'
  /** `postern move`: it is noted beside SQLite that it goes elsewhere; of that nothing is in the target. */
  | 'moving'
  /** A batch of rows is in the target, in a transaction that is open. */
  | 'copying'
  /** The batch is committed. */
  | 'copied'
  /** Both sides are the same; nothing says so. */
  | 'checked'
  /** It is noted beside SQLite that it has moved; the target does not say so. */
  | 'noted';

const failpoints = channel('postern:step');

export function failpoint(name: FailpointName): void {
  failpoints.publish(name);
}
