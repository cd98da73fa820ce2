/**
 * What is learned of a destination's greylisting, and the wait that follows from it. Pure.
 *
 * Greylisting refuses a mail that it sees for the first time, and takes it when it comes again after a delay that it
 * does not tell. So of a destination is kept the longest wait at which a mail was still refused and the shortest at
 * which one passed; the delay lies between. Operators choose round delays (postgrey and rspamd come with 5 minutes,
 * milter-greylist with 30): the next mail tries the smallest of those between, and when there is none left, what is
 * known to pass. Waits are counted from the first attempt, as the other side's clock is.
 *
 * The latest refusal is believed before an older success. A success at a wait that was refused before says nothing:
 * the recipient may have become known by another mail. What takes much longer than an hour is not greylisting.
 */
export interface Greylisting {
  /** 0: none was refused when it came again. */
  refusedAfterMs: number;
  /** Null: none has passed yet. */
  acceptedAfterMs: number | null;
}

export const nothingLearned: Greylisting = { refusedAfterMs: 0, acceptedAfterMs: null };

const minuteMs = 60_000;
/** Clocks differ, and a delay may be counted in whole seconds. Finer differences are not worth learning. */
const marginMs = 10_000;
const defaultDelays = [1, 2, 3, 5, 10, 15, 30, 60].map((minutes) => minutes * minuteMs);
/** By the default waits a delay of an hour is passed between 62 and 93 minutes. */
const maxDelayMs = 100 * minuteMs;

/** A mail was refused again, or at last taken, so long after its first attempt. */
export function learn(
  known: Greylisting,
  { outcome, waitedMs }: { outcome: 'refused' | 'accepted'; waitedMs: number },
): Greylisting {
  const { refusedAfterMs, acceptedAfterMs } = known;
  const accepted = acceptedAfterMs ?? Number.POSITIVE_INFINITY;
  if (waitedMs > maxDelayMs) return known;
  if (outcome === 'accepted') {
    const isBetter = waitedMs > refusedAfterMs && waitedMs < accepted - marginMs;
    return isBetter ? { refusedAfterMs, acceptedAfterMs: waitedMs } : known;
  }
  if (waitedMs <= refusedAfterMs + marginMs) return known;
  return { refusedAfterMs: waitedMs, acceptedAfterMs: waitedMs < accepted ? acceptedAfterMs : null };
}

/**
 * How much longer a mail should wait that was refused `waitedMs` after its first attempt; null: as it would anyway,
 * for as long as no mail has passed nothing is known of the delay but what it is not.
 */
export function waitFor({ refusedAfterMs, acceptedAfterMs }: Greylisting, waitedMs: number): number | null {
  if (acceptedAfterMs === null) return null;
  const refused = Math.max(refusedAfterMs, waitedMs);
  const delay = defaultDelays.find((each) => each > refused && each + marginMs < acceptedAfterMs);
  const target = delay === undefined ? acceptedAfterMs : delay + marginMs;
  return target > waitedMs ? target - waitedMs : null;
}
