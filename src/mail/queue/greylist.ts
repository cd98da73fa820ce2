/**
 * The facts learned about a destination's greylisting, and the wait that follows from it. Pure functions.
 *
 * Greylisting refuses a mail that it sees for the first time, and accepts it when it comes again after a delay that it does
 * not tell. So two waits are kept for a destination: the longest at which a mail was still refused, and the shortest at
 * which one passed; the delay lies between them. Operators choose round delays (postgrey and rspamd default to 5 minutes,
 * milter-greylist to 30): the next mail tries the smallest round delay between the two, and if there is none left, the
 * wait that is known to pass. Waits are counted from the first attempt, as the other side does.
 *
 * The latest refusal overrides an older success. A success at a wait that was refused before proves nothing, because
 * another mail may have made the recipient known. A wait of much more than an hour is not greylisting.
 */
export interface Greylisting {
  /** 0 if no mail was refused when it came again. */
  refusedAfterMs: number;
  /** Null if none has passed yet. */
  acceptedAfterMs: number | null;
}

export const nothingLearned: Greylisting = { refusedAfterMs: 0, acceptedAfterMs: null };

const minuteMs = 60_000;
/** Clocks differ, and hosts may count a delay in whole seconds. Smaller differences are ignored. */
const marginMs = 10_000;
const defaultDelays = [1, 2, 3, 5, 10, 15, 30, 60].map((minutes) => minutes * minuteMs);
/** With the default retry schedule, a delay of an hour is passed between 62 and 93 minutes. */
const maxDelayMs = 100 * minuteMs;

/** A mail was refused again, or at last accepted, `waitedMs` after its first attempt. */
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
 * How much longer a mail should wait that was refused `waitedMs` after its first attempt. Null: follow the schedule,
 * because no mail has passed yet and the delay is unknown.
 */
export function waitFor({ refusedAfterMs, acceptedAfterMs }: Greylisting, waitedMs: number): number | null {
  if (acceptedAfterMs === null) return null;
  const refused = Math.max(refusedAfterMs, waitedMs);
  const delay = defaultDelays.find((each) => each > refused && each + marginMs < acceptedAfterMs);
  const target = delay === undefined ? acceptedAfterMs : delay + marginMs;
  return target > waitedMs ? target - waitedMs : null;
}
