/** Times in the operator's time zone. Pure functions: the current time is a parameter. */

/** The Swedish form is ISO 8601 without the T. */
export function local(time: number): string {
  return new Date(time).toLocaleString('sv-SE');
}

/** `12:03`; with the day if that is not today. */
export function timeOfDay(time: number, now: number): string {
  const [day, clock] = local(time).split(' ') as [string, string];
  const short = clock.slice(0, 5);
  return local(now).startsWith(day) ? short : `${day} ${short}`;
}
