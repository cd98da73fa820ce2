/** Durations in the form that people read. */
const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** The largest unit, and for hours and days the next one: `230 ms`, `1.2 s`, `45 s`, `3 m`, `2 h 5 m`, `1 d 23 h`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const at = units.findIndex(([, size]) => ms >= size);
  const [unit, size] = units[at]!;
  const whole = `${Math.floor(ms / size)} ${unit}`;
  const [smaller, smallerSize] = units[at + 1] ?? ['', 1];
  const rest = unit === 'd' || unit === 'h' ? Math.floor((ms % size) / smallerSize) : 0;
  return rest > 0 ? `${whole} ${rest} ${smaller}` : whole;
}
