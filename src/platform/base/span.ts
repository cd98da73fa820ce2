/** Durations and relative times in the form that people read. Pure functions: the current time is a parameter. */
const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** In one unit; one day or hour with what is beyond it: `230 ms`, `1.2 s`, `90 s`, `1 hour 40 minutes`, `1 day`, `2 days`. */
export function span(ms: number): string {
  // Negative if the clock was set back meanwhile.
  if (ms < 1000) return `${Math.max(Math.round(ms), 0)} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  if (ms < 120_000) return `${Math.floor(ms / 1000)} s`;
  const at = units.findIndex(([, size]) => ms >= size);
  const [[unit, size], smaller] = [units[at]!, units[at + 1]];
  const count = Math.floor(ms / size);
  const beyond = count === 1 && smaller ? Math.floor((ms - size) / smaller[1]) : 0;
  return beyond === 0 ? counted(count, unit) : `${counted(count, unit)} ${counted(beyond, smaller![0])}`;
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

/** A duration rounded up, to a tenth of its unit if there are few, for what was done within it: `2.1 hours`, `67 minutes`. */
export function atMost(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms / 10) * 10} ms`;
  const found = units.find(([, size]) => ms >= 2 * size);
  const count = ms / (found?.[1] ?? 1000);
  return `${count < 10 ? Math.ceil(count * 10) / 10 : Math.ceil(count)} ${found ? `${found[0]}s` : 's'}`;
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
