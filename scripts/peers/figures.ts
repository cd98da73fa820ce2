/** Numbers for the eye: quantiles, times, a chart in text. What is printed is for a person; `--json` has the rest. */

/** 0.5: the median. NaN of nothing. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

export const median = (values: number[]) => quantile(values, 0.5);

export function ms(value: number): string {
  if (Number.isNaN(value)) return '-';
  return Math.abs(value) < 10_000 ? `${value.toFixed(1)} ms` : `${(value / 1000).toFixed(1)} s`;
}

/** To standard error, so that standard output is the result alone. */
export function progress(text: string): void {
  console.error(`… ${text}`);
}

const heights = ' ▁▂▃▄▅▆▇█';

/** A column of text for each value; the highest is as high as the line. */
export function bars(values: number[]): string {
  const top = Math.max(...values, 1);
  return values.map((value) => heights[Math.ceil((value / top) * 8)]).join('');
}
