/**
 * When to try again: a pure function, the dice a parameter.
 *
 * The waits are a list (POSTERN_MTA_RETRY), each spread by a fifth up and down so that mails deferred together do
 * not come back together; past its end the last wait repeats. Where the other side said when to come back, or its
 * greylisting is known, that is the wait instead, spread upward alone: too early would be in vain. Such a hint may
 * shorten a wait, but not for ever: from the second attempt on to no less than the wait of half as many attempts, or
 * a host that always says "in a minute" would be asked 2,880 times. A wait never leads beyond the maximum age: the
 * last attempt is made when the mail turns that old, and if it is deferred again, there is no next.
 */
const spread = 0.2;
const hintSpread = 0.1;
/** Whatever a host says, nobody is asked again sooner. */
const shortestMs = 1000;

export interface Schedule {
  /** Milliseconds before the second attempt, the third, and so on; at least one. */
  waits: readonly number[];
  /** A number from 0 up to 1, as Math.random gives it. */
  random: () => number;
}

export interface Deferred {
  /** Made so far. */
  attempts: number;
  now: number;
  expiresAt: number;
  /** The wait that was asked for or learned; null or absent: the ordinary one. */
  hintMs?: number | null;
}

/** The time of the attempt after `attempts` made ones, or null where the mail has become too old. */
export function nextAttemptAt(schedule: Schedule, deferred: Deferred): number | null {
  const { attempts, now, expiresAt, hintMs = null } = deferred;
  if (now >= expiresAt) return null;
  const wait = hintMs === null ? ordinary(schedule, attempts) : hinted(schedule, attempts, hintMs);
  return Math.min(Math.round(now + wait), expiresAt);
}

function ordinary({ waits, random }: Schedule, attempts: number): number {
  return waitAfter(waits, attempts) * (1 - spread + 2 * spread * random());
}

function hinted({ waits, random }: Schedule, attempts: number, hintMs: number): number {
  const min = attempts === 1 ? shortestMs : waitAfter(waits, Math.floor(attempts / 2));
  return Math.max(hintMs, min) * (1 + hintSpread * random());
}

function waitAfter(waits: readonly number[], attempts: number): number {
  return waits[Math.min(attempts, waits.length) - 1]!;
}
