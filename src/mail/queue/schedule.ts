/**
 * When to retry: a pure function; the random source is a parameter.
 *
 * The waits are a list (POSTERN_MTA_RETRY). Each is spread by a fifth up and down, so that mails deferred together do not
 * come back together; after the end of the list, the last wait repeats. If the remote host said when to come back, or its
 * greylisting delay is known, that wait is used instead, spread upward only, because too early would be in vain. From the
 * second attempt on, such a hint cannot be shorter than the wait of half as many attempts; otherwise a host that always
 * says "in a minute" would be asked 2,880 times. The last attempt is made when the mail reaches its maximum age.
 *
 * Mail with a deadline of its own must get its attempts before it. A wait that ends before the deadline is kept. One that
 * does not is cut to half of the time that is left, so the attempts are closer together towards the end.
 */
const spread = 0.2;
const hintSpread = 0.1;
/** The shortest wait, whatever a host says. */
const minWaitMs = 1000;
/** A cut wait that is less than this share of the scheduled one is not worth another attempt; nor is one below `minWaitMs`. */
const minShareBeforeDeadline = 0.01;

export interface Schedule {
  /** Milliseconds before the second attempt, the third, and so on; at least one. */
  waits: readonly number[];
  /** A number from 0 up to 1, like Math.random. */
  random: () => number;
}

export interface Deferred {
  /** Attempts made so far. */
  attempts: number;
  now: number;
  expiresAt: number;
  /** No attempt starts at or after `expiresAt`. */
  hasDeadline?: boolean | undefined;
  /** The wait that the host asked for or that was learned; null or absent: the scheduled wait. */
  hintMs?: number | null;
}

/** The time of the next attempt, or null if the mail has reached its maximum age, or nearly its deadline. */
export function nextAttemptAt(schedule: Schedule, deferred: Deferred): number | null {
  const { attempts, now, expiresAt, hasDeadline, hintMs = null } = deferred;
  if (now >= expiresAt) return null;
  const wait = hintMs === null ? scheduledWait(schedule, attempts) : hintedWait(schedule, attempts, hintMs);
  const at = Math.round(now + wait);
  if (!hasDeadline) return Math.min(at, expiresAt);
  if (at < expiresAt) return at;
  const cutWait = (expiresAt - now) / 2;
  const minWait = Math.max(minWaitMs, minShareBeforeDeadline * waitAfter(schedule.waits, attempts));
  return cutWait < minWait ? null : Math.round(now + cutWait);
}

function scheduledWait({ waits, random }: Schedule, attempts: number): number {
  return waitAfter(waits, attempts) * (1 - spread + 2 * spread * random());
}

function hintedWait({ waits, random }: Schedule, attempts: number, hintMs: number): number {
  const min = attempts === 1 ? minWaitMs : waitAfter(waits, Math.floor(attempts / 2));
  return Math.max(hintMs, min) * (1 + hintSpread * random());
}

function waitAfter(waits: readonly number[], attempts: number): number {
  return waits[Math.min(attempts, waits.length) - 1]!;
}
