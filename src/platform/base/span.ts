/** Durations and relative times in the form that people read. Pure functions: the current time is a parameter. */
const units = [
  ['days', 86_400_000],
  ['hours', 3_600_000],
  ['minutes', 60_000],
] as const;

/** The largest unit of which there are two, so that little is cut off: `230 ms`, `1.2 s`, `90 s`, `100 minutes`, `2 days`. */
export function span(ms: number): string {
  // Negative if the clock was set back meanwhile.
  if (ms < 1000) return `${Math.max(Math.round(ms), 0)} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const [unit, size] = unitOf(ms);
  return `${Math.floor(ms / size)} ${unit}`;
}

/** A duration rounded up, to a tenth of its unit if there are few, for what was done within it: `2.1 hours`, `67 minutes`. */
export function atMost(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms / 10) * 10} ms`;
  const [unit, size] = unitOf(ms);
  const count = ms / size;
  return `${count < 10 ? Math.ceil(count * 10) / 10 : Math.ceil(count)} ${unit}`;
}

function unitOf(ms: number) {
  return units.find(([, size]) => ms >= 2 * size) ?? (['s', 1000] as const);
}

/** `just now`, `3 minutes ago`, `in 30 s`. */
export function relative(time: number, now: number): string {
  if (time >= now + 1000) return `in ${span(time - now)}`;
  return now - time < 60_000 ? 'just now' : `${span(now - time)} ago`;
}

/** `relative` of a time that has passed: one that lies in the future, because a clock was ahead, reads as now. */
export const ago = (time: number, now: number): string => relative(Math.min(time, now), now);

/** `due now`, `in 3 minutes` */
export function dueIn(ms: number): string {
  return ms < 1000 ? 'due now' : `in ${span(ms)}`;
}
