/** Destinations as the queue pages show them: pure functions of database rows. */

import { briefly, type DestinationStatus } from '../../../operate/explain/destination-status.ts';
import { ageNames } from '../../../operate/explain/queue-ages.ts';
import { type QueueRow, totalOf } from '../../../operate/explain/queue-rows-by-destination.ts';
import { exactly, relative } from '../../number-format.ts';

const conditions: Record<DestinationStatus['is'], { word: string; tone: string }> = {
  suspended: { word: 'Suspended', tone: 'warn' },
  circuit_open: { word: 'Circuit open', tone: 'bad' },
  busy: { word: 'Busy', tone: 'busy' },
  throttled: { word: 'Throttled', tone: 'warn' },
  greylisting: { word: 'Greylisting', tone: 'warn' },
  paused: { word: 'Paused', tone: 'warn' },
  no_source: { word: 'No source', tone: 'bad' },
  unattended: { word: 'No server', tone: 'bad' },
  ok: { word: 'OK', tone: 'good' },
};

const worst: DestinationStatus['is'][] = ['unattended', 'no_source', 'circuit_open', 'suspended'];

export type DestinationView = ReturnType<typeof presentRow>;

/** `max`: the largest count of the table, which gets the darkest shade. */
export function presentRow(line: QueueRow, now: number, max = Math.max(0, ...line.ages)) {
  const { is } = line.condition;
  // An idle destination has no list of ages.
  const ages = ageNames.map((_, at) => line.ages[at] ?? 0);
  return {
    ...line,
    total: totalOf(line),
    ages,
    ...conditions[is],
    is,
    said: briefly(line.condition, exactly),
    href: hrefOf(line.destination),
    byAge: ageNames.map((name, at) => ({
      name,
      count: ages[at]!,
      shade: shadeOf(ages[at]!, max),
    })),
    next: nextAttempt(line.nextAttemptAt, now),
  };
}

/** In words if it is less than a minute away, else null: the page shows the time. */
export function nextAttempt(time: number | null, now: number): string | null {
  if (time === null) return 'none';
  if (time <= now) return 'due';
  return time - now < 60_000 ? ahead(time, now) : null;
}

function ahead(time: number, now: number): string {
  return time > now && time - now < 60_000 ? `in ${Math.ceil((time - now) / 1000)} s` : relative(time, now);
}

export function presentRows(lines: QueueRow[], now: number): DestinationView[] {
  const max = Math.max(0, ...lines.flatMap(({ ages }) => ages));
  return lines.map((line) => presentRow(line, now, max));
}

/** Destinations whose name or one of whose domains contains the text. */
export function matching(lines: QueueRow[], text: string): QueueRow[] {
  const sought = text.toLowerCase();
  return lines.filter(({ destination, domains }) =>
    [destination, ...domains].some((name) => name.includes(sought)),
  );
}

export function totals(lines: QueueRow[]) {
  const sum = (countOf: (line: QueueRow) => number) => lines.reduce((all, line) => all + countOf(line), 0);
  return {
    waiting: sum(({ counts }) => counts.queued + counts.deferred),
    due: sum(({ parked }) => parked),
    sending: sum(({ counts }) => counts.sending),
    held: sum(({ counts }) => counts.held),
    inTrouble: lines.filter(({ condition }) => worst.includes(condition.is)).length,
  };
}

export function hrefOf(destination: string): string {
  return `/dashboard/queue/to/${encodeURIComponent(destination)}`;
}

const shades = 4;

/** From 0 (none) to 4 (most), on a logarithmic scale. */
function shadeOf(count: number, max: number): number {
  if (count === 0) return 0;
  return max <= 1 ? 1 : Math.max(1, Math.ceil((shades * Math.log(count)) / Math.log(max)));
}
