/** Tracking in a message that was given: in its HTML parts, but for those that altering would break (html-parts.ts). */
import { editedParts } from './html-parts.ts';
import { type Allowance, type MessageTracking, prepareTracking, type Tracker } from './html-tracking.ts';

/** Null where nothing is to be tracked: then the message is the same for all. */
export function trackedParts(
  raw: Buffer,
  tracking: MessageTracking,
  allowance: Allowance,
): ((tracker: Tracker) => Buffer) | null {
  if (!tracking.opens && !tracking.clicks) return null;
  let hasPixel = false;
  return editedParts(raw, (html, reading) => {
    // One pixel tells of all the mail.
    const opens = tracking.opens && !hasPixel;
    const tracked = prepareTracking(
      html,
      { ...tracking, opens },
      allowance,
      reading === 'latin1' ? isAscii : undefined,
    );
    hasPixel ||= tracked !== null;
    return tracked;
  });
}

/** A link is a URL in UTF-8; of another character set, no more than ASCII is known here. */
function isAscii(target: string): boolean {
  return /^[\x20-\x7e]*$/.test(target);
}
