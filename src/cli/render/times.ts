/** Times and durations in the form that people read. Pure functions: the current time is a parameter. */

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

/** `3 m ago`, `in 2 h 5 m`, `now`. */
export function relative(time: number, now: number): string {
  const distance = Math.floor(Math.abs(time - now) / 1000) * 1000;
  if (distance === 0) return 'now';
  return time < now ? `${span(distance)} ago` : `in ${span(distance)}`;
}

/** In the operator's time zone. The Swedish form is ISO 8601 without the T. */
export function local(time: number): string {
  return new Date(time).toLocaleString('sv-SE');
}

/** `12:03`; with the day if that is not today. */
export function timeOfDay(time: number, now: number): string {
  const [day, clock] = local(time).split(' ') as [string, string];
  const short = clock.slice(0, 5);
  return local(now).startsWith(day) ? short : `${day} ${short}`;
}
