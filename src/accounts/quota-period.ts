/** The period of a quota: one calendar month, counted in UTC from the day it began. */

/**
 * When the quota renews next: whole months after `since` until it lies after `now`. Each is counted from `since`
 * itself and cut to the month's length, so that 31 January goes on to 28 February and then to 31 March.
 */
export function renewsAt(since: number, now: number): number {
  const start = new Date(since);
  let months = Math.max(monthsBetween(start, new Date(now)), 1);
  while (monthsAfter(start, months) <= now) months += 1;
  return monthsAfter(start, months);
}

/**
 * The day that a quota's months are counted from stays the organization's for ever; what moves on is how many of
 * them have begun. Answers the newest beginning after `period` and not after `now`, or null while the period lasts.
 */
export function renewedAt(since: number, period: number, now: number): number | null {
  const start = new Date(since);
  let months = monthsBetween(start, new Date(now));
  if (monthsAfter(start, months) > now) months -= 1;
  const begun = monthsAfter(start, Math.max(months, 0));
  return begun > period ? begun : null;
}

function monthsBetween(start: Date, end: Date): number {
  const years = end.getUTCFullYear() - start.getUTCFullYear();
  return years * 12 + end.getUTCMonth() - start.getUTCMonth();
}

function monthsAfter(start: Date, months: number): number {
  const at = new Date(start);
  // The first of a month has a namesake in every month; the day itself may not.
  at.setUTCDate(1);
  at.setUTCMonth(at.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate();
  at.setUTCDate(Math.min(start.getUTCDate(), lastDay));
  return at.getTime();
}
