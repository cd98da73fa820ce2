/** The period of a quota: one calendar month in UTC, counted from the day on which the quota began. */

/**
 * The next renewal: the first whole number of months after `since` that lies after `now`. Months are counted from `since`
 * itself and cut to the month's length, so that 31 January is followed by 28 February and 31 March.
 */
export function renewsAt(since: number, now: number): number {
  const start = new Date(since);
  let months = Math.max(monthsBetween(start, new Date(now)), 1);
  while (monthsAfter(start, months) <= now) months += 1;
  return monthsAfter(start, months);
}

/**
 * The latest renewal after `period` and not after `now`; null while the current period lasts. The day that months are counted
 * from never changes.
 */
export function renewedAt(since: number, period: number, now: number): number | null {
  const start = new Date(since);
  let months = monthsBetween(start, new Date(now));
  if (monthsAfter(start, months) > now) months -= 1;
  const begun = monthsAfter(start, Math.max(months, 0));
  return begun > period && begun <= now ? begun : null;
}

function monthsBetween(start: Date, end: Date): number {
  const years = end.getUTCFullYear() - start.getUTCFullYear();
  return years * 12 + end.getUTCMonth() - start.getUTCMonth();
}

function monthsAfter(start: Date, months: number): number {
  const at = new Date(start);
  // From the 1st, because adding months to the 31st would skip short months.
  at.setUTCDate(1);
  at.setUTCMonth(at.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate();
  at.setUTCDate(Math.min(start.getUTCDate(), lastDay));
  return at.getTime();
}
