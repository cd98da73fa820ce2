/**
 * How long mails took from acceptance to delivery, as a histogram: precise enough for a median and a 95th percentile, and
 * the histograms of several hours add up.
 */

/** The upper bound of each bucket in milliseconds. One more bucket holds everything longer. */
export const latencyBounds = [
  100, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000,
];

export interface Quantile {
  ms: number;
  /** The true value is at least `ms`: it is beyond the last bound. */
  isMore: boolean;
}

/** The time within which `share` of the mails arrived, or null if none did. Mails are taken as evenly spread within a bucket. */
export function quantile(counts: readonly number[], share: number): Quantile | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = share * total;
  for (const [index, bound] of latencyBounds.entries()) {
    const count = counts[index]!;
    if (left <= count && count > 0) {
      const lower = latencyBounds[index - 1] ?? 0;
      return { ms: lower + (bound - lower) * (left / count), isMore: false };
    }
    left -= count;
  }
  return { ms: latencyBounds.at(-1)!, isMore: true };
}
