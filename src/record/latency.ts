/**
 * How long mails took from being accepted to being delivered, counted by classes: enough to tell a median and a 95th
 * percentile, and classes of several hours add up.
 */

/** Each class's upper bound, in milliseconds; one more class is for what took longer. */
export const latencyBounds = [
  ...[100, 250, 500, 1000, 2000, 5000, 10_000, 30_000],
  ...[60_000, 300_000, 900_000, 3_600_000, 21_600_000],
];

export interface Quantile {
  ms: number;
  /** It took this long at least: beyond the last bound nothing is known. */
  isMore: boolean;
}

/** The time within which the `share` of them arrived, or null where none did. Within a class they count as spread evenly. */
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
