/**
 * Request limits of an organization: a window of one second, which opens with its first request, and the UTC day. Pure
 * functions of the organization's stored usage of the day. A null limit is no limit. A refused request is not counted.
 */
import { Refusal } from '#platform/values/refusal.ts';

export interface RequestLimits {
  perSecond: number | null;
  perDay: number | null;
}

/** An organization's use of one day. */
export interface Usage {
  requests: number;
  secondSince: number;
  secondRequests: number;
}

export interface Window {
  name: 'second' | 'day';
  limit: number;
  remaining: number;
  /** Milliseconds until the window ends. */
  resetMs: number;
}

export interface Taken {
  allowed: boolean;
  usage: Usage;
  /** The windows that have a limit, after this request. */
  windows: Window[];
}

const secondMs = 1000;
const dayMs = 86_400_000;

/** The UTC day as YYYY-MM-DD. */
export function dayOf(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

/** Milliseconds to the next 00:00 UTC. */
export function untilMidnight(now: number): number {
  return dayMs - (now % dayMs);
}

/** How many requests a call counts as, in each window. */
export interface RequestCount {
  second: number;
  day: number;
}

const one: RequestCount = { second: 1, day: 1 };

/** Counts a call if it fits in both windows. */
export function takeRequest(usage: Usage, limits: RequestLimits, now: number, count = one): Taken {
  // Requests can arrive out of order between nodes, so `now` may lie a little before the start of the window.
  const isOpen = Math.abs(now - usage.secondSince) < secondMs;
  const current = isOpen ? usage : { ...usage, secondSince: now, secondRequests: 0 };
  const counted = {
    ...current,
    requests: current.requests + count.day,
    secondRequests: current.secondRequests + count.second,
  };
  const allowed =
    counted.requests <= (limits.perDay ?? Number.POSITIVE_INFINITY) &&
    counted.secondRequests <= (limits.perSecond ?? Number.POSITIVE_INFINITY);
  const next = allowed ? counted : current;
  return { allowed, usage: next, windows: windowsOf(next, limits, now) };
}

function windowsOf(usage: Usage, limits: RequestLimits, now: number): Window[] {
  const windows: Window[] = [];
  if (limits.perSecond !== null) {
    windows.push({
      name: 'second',
      limit: limits.perSecond,
      remaining: Math.max(limits.perSecond - usage.secondRequests, 0),
      resetMs: usage.secondSince + secondMs - now,
    });
  }
  if (limits.perDay !== null) {
    windows.push({
      name: 'day',
      limit: limits.perDay,
      remaining: Math.max(limits.perDay - usage.requests, 0),
      resetMs: untilMidnight(now),
    });
  }
  return windows;
}

export function overLimit(windows: Window[]): Refusal {
  const { name, limit, resetMs } = bindingWindow(windows)!;
  const requests = limit === 1 ? '1 request' : `${limit} requests`;
  const message = `This organization may make ${requests} a ${name}; wait for the next.`;
  return new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: resetMs });
}

/** The window with the fewest requests left; the second's on a tie. Null without limits. */
export function bindingWindow(windows: Window[]): Window | null {
  return windows.reduce<Window | null>(
    (binding, window) => (binding === null || window.remaining < binding.remaining ? window : binding),
    null,
  );
}
