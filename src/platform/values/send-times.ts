/** The limits of `scheduledAt` and `expiresAfter` (docs/api.md section 2.1), for every way in which they are given. */
import { iso } from '#platform/base/clock.ts';
import { type Issue, Refusal } from './refusal.ts';

const maxAheadDays = 30;
export const minExpiresAfter = 10;

export interface SendTimes {
  /** When the mail is to be sent; absent: now. */
  scheduledAt?: number | undefined;
  /** Seconds from the acceptance, or from `scheduledAt`, until no further attempt starts. */
  expiresAfter?: number | undefined;
}

/** Null if the times are within the limits. */
export function sendTimesRefusal(
  { scheduledAt, expiresAfter }: SendTimes,
  now: number,
  maxAgeMs: number,
): Refusal | null {
  const issues: Issue[] = [];
  const add = (name: string, received: string, expected: string) => {
    const message = `${name}: must be ${expected}`;
    issues.push({ code: 'custom', expected, received, path: [name], message });
  };
  if (scheduledAt !== undefined && (scheduledAt <= now || scheduledAt > now + maxAheadDays * 86_400_000))
    add('scheduledAt', iso(scheduledAt), `in the future, at most ${maxAheadDays} days ahead`);
  const maxSeconds = Math.floor(maxAgeMs / 1000);
  if (expiresAfter !== undefined && (expiresAfter < minExpiresAfter || expiresAfter > maxSeconds))
    add('expiresAfter', String(expiresAfter), `from ${minExpiresAfter} to ${maxSeconds} seconds`);
  if (issues.length === 0) return null;
  return new Refusal('VALIDATION_ERROR', 'The request is not valid.', { issues });
}

/** Null if a time that is given alone is within the limits. */
export function scheduledAtRefusal(scheduledAt: number, now: number): Refusal | null {
  return sendTimesRefusal({ scheduledAt }, now, 0);
}
