/** Times and durations in the form that people read. Pure functions: the current time is a parameter. */

import { span } from '../../base/span.ts';

export { span } from '../../base/span.ts';

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
