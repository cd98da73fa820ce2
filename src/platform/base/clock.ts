/**
 * The only source of time. Code that reads the time or waits takes a Clock, so that a test can set the time itself. Times
 * are milliseconds since the epoch. Network timeouts are different: they belong to their sockets and run in real time.
 */
export interface Clock {
  now(): number;
  /** Calls `action` once, `ms` from now, unless the returned function is called first. */
  after(ms: number, action: () => void): () => void;
}

/** setTimeout keeps its delay in 31 bits; with a longer one it fires at once. */
const maxDelay = 2 ** 31 - 1;
/** Longer delays end at a multiple of this, so that what is due at about the same time wakes the process once. */
const stepMs = 50;
const minStepped = 4 * stepMs;

export const systemClock: Clock = {
  now: Date.now,
  after(ms, action) {
    const timer = setTimeout(action, Math.min(Math.max(ms, 0), maxDelay));
    return () => clearTimeout(timer);
  },
};

/** `after` of the system's clock, whose longer delays end in common steps. */
export function steppedTimers(): Clock['after'] {
  /** By step, what is due then. */
  const steps = new Map<number, { actions: Set<() => void>; timer: NodeJS.Timeout }>();

  function runStep(at: number): void {
    const { actions } = steps.get(at)!;
    steps.delete(at);
    for (const act of actions) act();
  }

  return (ms, action) => {
    if (ms < minStepped || ms > maxDelay - stepMs) return systemClock.after(ms, action);
    const now = performance.now();
    const at = Math.ceil((now + ms) / stepMs);
    const step = steps.get(at) ?? { actions: new Set(), timer: setTimeout(runStep, at * stepMs - now, at) };
    steps.set(at, step);
    const own = () => action();
    step.actions.add(own);
    return () => {
      if (!step.actions.delete(own) || step.actions.size > 0 || steps.get(at) !== step) return;
      steps.delete(at);
      clearTimeout(step.timer);
    };
  };
}

/** The clocks of two nodes differ by no more (server/database-clock.ts). */
const maxSkewMs = 2_000;

/**
 * Whether `at` lies in the last `ms`. A time to come, which a clock that was ahead has left behind, does not: what is kept from
 * such a time is never young.
 */
export function isRecent(at: number, now: number, ms: number): boolean {
  const age = now - at;
  return age < ms && age > -Math.min(ms, maxSkewMs);
}

/** How long ago `at` was; a time to come, left by a clock that was ahead, is now. */
export function elapsed(at: number, now: number): number {
  return Math.max(now - at, 0);
}

/** How long a poll waits so that all polls of this interval come at the same times, and one question serves them all. */
export function untilPoll(now: number, intervalMs: number): number {
  const wait = intervalMs - (now % intervalMs);
  // A timer may fire a little before its time.
  return wait < intervalMs / 20 ? wait + intervalMs : wait;
}

/** ISO 8601 in UTC with milliseconds: the format of every time that the program prints or sends. */
export function iso(time: number): string {
  return new Date(time).toISOString();
}

/** Such as "2026-11-26 15:38 UTC". */
export function utcMinute(time: number): string {
  return `${iso(time).slice(0, 16).replace('T', ' ')} UTC`;
}

export function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time);
}
