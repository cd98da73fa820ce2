/** Formats numbers for a reader: quantiles and times. `--json` has the exact values. */

/** 0.5 is the median. NaN for an empty list. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

export const median = (values: number[]) => quantile(values, 0.5);

export function ms(value: number): string {
  if (Number.isNaN(value)) return '-';
  return Math.abs(value) < 10_000 ? `${value.toFixed(1)} ms` : `${(value / 1000).toFixed(1)} s`;
}

/** Writes to standard error, so that standard output has only the result. */
export function progress(text: string): void {
  console.error(`… ${text}`);
}
