/** Formats results for a reader: quantiles, times and tables. `--json` has the exact values. */
import Table from 'cli-table3';

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

/** For the terminal; with `colWidths`, words wrap. */
export function tableOf(
  head: string[],
  rows: (string | number | null)[][],
  colWidths?: (number | null)[],
): string {
  const table = new Table({
    head,
    style: { head: [], border: [] },
    ...(colWidths && { colWidths, wordWrap: true }),
  });
  table.push(...rows);
  return table.toString();
}

/** Writes to standard error, so that standard output has only the result. */
export function progress(text: string): void {
  console.error(`… ${text}`);
}
