/**
 * Reads from a reply's text when to retry: "try again in 300 seconds", "come back in 00:04:32", "Greylisted for 5
 * minutes". A time outside the bounds is ignored, so that a host can neither make us retry without pause nor hold a
 * mail for days.
 */
const minMs = 10_000;
const maxMs = 24 * 3_600_000;

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000 };

/** The words before a time that is meant as a delay; other times belong to limits ("100 mails in 5 minutes"). */
const asked = String.raw`(?:\b(?:try|retry|come back|resend|again|wait)\b[^.\d]{0,40}|(?:gr[ae]y-?listed|deferred|delayed) for )`;
const clock = String.raw`(?<clock>(?:\d{1,2}:)?\d{1,2}:\d\d)`;
/** Includes ISO 8601's PT5M. */
const count = String.raw`(?:PT)?(?<count>\d{1,6}) {0,2}(?<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)`;
const hint = new RegExp(`${asked}(?:${clock}|${count})\\b`, 'i');

/** In milliseconds from now; null if there is no time or it is out of bounds. */
export function retryAfterMs(text: string): number | null {
  const found = hint.exec(text)?.groups;
  if (!found) return null;
  const ms = found.clock
    ? found.clock.split(':').reduce((sum, part) => sum * 60 + Number(part), 0) * 1000
    : Number(found.count) * unitMs[found.unit![0]!.toLowerCase()]!;
  return ms >= minMs && ms <= maxMs ? ms : null;
}
