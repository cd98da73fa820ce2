/**
 * The fields with which mail readers unsubscribe (RFC 2369, RFC 8058), for mail of a stream that people subscribe to. They are
 * among the signed ones (sign.ts). A caller's own List-Unsubscribe wins: then nothing is added.
 */

import { type FieldLine, field } from '#mail/compose/field.ts';
import type { Tracker } from './html-tracking.ts';

/** None if the recipient cannot unsubscribe. */
export function unsubscribeFields({ unsubscribe }: Pick<Tracker, 'unsubscribe'>): FieldLine[] {
  if (!unsubscribe) return [];
  return [
    field('List-Unsubscribe', unsubscribe),
    field('List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'),
  ];
}

/** Whether each recipient gets fields of his own. `names`: of the fields of the caller's message. */
export function isSubscribed(trackers: Tracker[], names: () => string[]): boolean {
  return (
    Boolean(trackers[0]?.unsubscribe) && !names().some((name) => name.toLowerCase() === 'list-unsubscribe')
  );
}
