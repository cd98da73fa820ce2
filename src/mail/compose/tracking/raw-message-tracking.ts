/** Tracking in a message that the caller gave whole: in the HTML parts that can be edited safely (html-parts.ts). */
import { editedParts } from '#mail/compose/html-parts.ts';
import { type LinkAllowance, type MessageTracking, prepareTracking, type Tracker } from './html-tracking.ts';

/** Null if nothing is tracked: then the message is the same for all recipients. */
export function trackedParts(
  raw: Buffer,
  tracking: MessageTracking,
  allowance: LinkAllowance,
): ((tracker: Tracker) => Buffer) | null {
  if (!tracking.opens && !tracking.clicks) return null;
  let hasPixel = false;
  return editedParts(raw, ({ html, charset, isShown }) => {
    // One pixel is enough for the whole mail.
    const opens = tracking.opens && !hasPixel && isShown;
    const tracked = prepareTracking(
      html,
      { ...tracking, opens },
      allowance,
      charset === 'latin1' ? isAscii : undefined,
    );
    hasPixel ||= opens;
    return tracked;
  });
}

/** A link is a URL in UTF-8. In other character sets, only the ASCII characters can be read here. */
function isAscii(target: string): boolean {
  return /^[\x20-\x7e]*$/.test(target);
}
