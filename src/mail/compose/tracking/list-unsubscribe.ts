/**
 * The fields with which mail readers unsubscribe (RFC 2369, RFC 8058), for mail of a stream that people subscribe to. They are
 * among the signed ones (sign.ts). A caller's own List-Unsubscribe wins: then nothing is added.
 */

import { type FieldLine, field } from '#mail/compose/field.ts';
import type { Tracker } from './html-tracking.ts';

const post = 'List-Unsubscribe-Post';

/** None if the recipient cannot unsubscribe. `names`: of the fields of the caller's message; two of a kind would be ignored. */
export function unsubscribeFields(
  { unsubscribe }: Pick<Tracker, 'unsubscribe'>,
  names: readonly string[],
): FieldLine[] {
  if (!unsubscribe) return [];
  const link = field('List-Unsubscribe', unsubscribe);
  return has(names, post) ? [link] : [link, field(post, 'List-Unsubscribe=One-Click')];
}

/** Whether each recipient gets fields of his own. `names`: of the fields of the caller's message. */
export function isSubscribed(trackers: Tracker[], names: () => readonly string[]): boolean {
  return Boolean(trackers[0]?.unsubscribe) && !has(names(), 'List-Unsubscribe');
}

function has(names: readonly string[], wanted: string): boolean {
  return names.some((name) => name.toLowerCase() === wanted.toLowerCase());
}
