/**
 * The one source of time. Everything that reads the time or waits for it takes a Clock, so that a test can turn
 * the hands itself. Times are milliseconds since the epoch. Network timeouts are not schedule: they belong to
 * their sockets and run on the real clock.
 */
export interface Clock {
  now(): number;
  /** Calls `action` once, `ms` from now, unless the returned function is called first. */
  after(ms: number, action: () => void): () => void;
}

/** setTimeout keeps its delay in 31 bits and fires at once beyond that. */
const maxDelay = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  after(ms, action) {
    const timer = setTimeout(action, Math.min(Math.max(ms, 0), maxDelay));
    return () => clearTimeout(timer);
  },
};

/** ISO 8601 in UTC with milliseconds, the form of every time that leaves the program. */
export function iso(time: number): string {
  return new Date(time).toISOString();
}

export function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time);
}
