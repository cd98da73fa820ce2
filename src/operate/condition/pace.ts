/** How fast a destination accepts mail, and how long what waits there will take. Pure functions of its published state. */

import type { DestinationState } from '#mail/record/rows/destination-status-rows.ts';
import { span } from '#platform/base/span.ts';

export interface Pace {
  /** Mails accepted in a minute; null if it is not known yet. */
  perMinute: number | null;
  /** Until all that waits there now is accepted at this pace; null if it is not known, or nothing is accepted. */
  drainMs: number | null;
}

/** In less time a count says nothing about a rate. */
const minSpanMs = 30_000;

/** `waiting`: null if it has not been counted. */
export function paceOf({ accepted }: DestinationState, waiting: number | null, now: number): Pace {
  if (!accepted || now - accepted.since < minSpanMs) return { perMinute: null, drainMs: null };
  const perMinute = accepted.count / ((now - accepted.since) / 60_000);
  const isKnown = waiting !== null && perMinute > 0;
  return { perMinute, drainMs: isKnown ? Math.round((waiting / perMinute) * 60_000) : null };
}

function rateText(perMinute: number): string {
  const isFraction = perMinute > 0 && perMinute < 9.95;
  return `${isFraction ? perMinute.toFixed(1).replace(/\.0$/, '') : Math.round(perMinute)} a minute`;
}

/** `12 a minute`, `2 hours to drain`: as far as they are known. */
export function paceText({ perMinute, drainMs }: Pace): string[] {
  if (perMinute === null) return [];
  return [rateText(perMinute), ...(drainMs === null ? [] : [`${span(drainMs)} to drain`])];
}

/** Follows "it now gets 1 connection". */
export function paceSentence({ perMinute, drainMs }: Pace): string {
  if (perMinute === null) return '';
  const drain = drainMs === null ? '' : `; at this rate, what waits there takes ${span(drainMs)}`;
  return ` and accepts ${rateText(perMinute)}${drain}`;
}

export function paceDocument({ perMinute, drainMs }: Pace) {
  return {
    perMinute: perMinute === null ? null : Math.round(perMinute * 10) / 10,
    drainSeconds: drainMs === null ? null : Math.round(drainMs / 1000),
  };
}
