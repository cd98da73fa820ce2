/**
 * When to try again: a pure function, the dice a parameter.
 *
 * The waits are a list (POSTERN_MTA_RETRY), each spread by a fifth up and down so that mails deferred together do
 * not come back together; past its end the last wait repeats. A wait never leads beyond the maximum age: the last
 * attempt is made when the mail turns that old, and if it is deferred again, there is no next.
 */
const spread = 0.2;

export interface Schedule {
  /** Milliseconds before the second attempt, the third, and so on; at least one. */
  waits: readonly number[];
  /** A number from 0 up to 1, as Math.random gives it. */
  random: () => number;
}

/** The time of the attempt after `attempts` made ones, or null where the mail has become too old. */
export function nextAttemptAt(
  { waits, random }: Schedule,
  { attempts, now, expiresAt }: { attempts: number; now: number; expiresAt: number },
): number | null {
  if (now >= expiresAt) return null;
  const wait = waits[Math.min(attempts, waits.length) - 1]!;
  const spreadWait = wait * (1 - spread + 2 * spread * random());
  return Math.min(Math.round(now + spreadWait), expiresAt);
}
