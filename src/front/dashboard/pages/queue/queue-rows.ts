/** Destinations as the queue pages show them: pure functions of database rows. */

import { exactly } from '#front/dashboard/number-format.ts';
import { causes } from '#operate/condition/causes.ts';
import { conditionText } from '#operate/condition/condition-words.ts';
import { ageNames, type QueueRow, totalOf } from '#operate/explain/queue-rows-by-destination.ts';
import { capital } from '#platform/base/capital.ts';

/** Keyed by severity. */
const tones = { act: 'bad', watch: 'warn', ok: 'good' };

export type DestinationView = ReturnType<typeof presentRow>;

/** `max`: the largest count of the table, which gets the darkest shade. */
export function presentRow(row: QueueRow, now: number, max = Math.max(0, ...row.ages)) {
  const { cause, severity } = row.condition;
  const isWell = cause === 'ok';
  const text = conditionText(row.condition, exactly);
  return {
    ...row,
    total: totalOf(row),
    label: cause === 'ok' ? 'OK' : capital(causes[cause].label),
    tone: cause === 'busy' ? 'busy' : tones[severity],
    isWell,
    text,
    /** Null if the text has it. */
    reply: !isWell && text.includes(row.lastReply ?? '') ? null : row.lastReply,
    href: hrefOf(row.destination),
    byAge: row.ages.map((count, at) => ({ name: ageNames[at]!, count, shade: shadeOf(count, max) })),
    next: nextAttempt(row.nextAttemptAt, now),
  };
}

/** In words if it is less than a minute away, else null: the page shows the time. */
export function nextAttempt(time: number | null, now: number): string | null {
  if (time === null) return 'none';
  if (time <= now) return 'due';
  return time - now < 60_000 ? `in ${Math.ceil((time - now) / 1000)} s` : null;
}

export function presentRows(rows: QueueRow[], now: number): DestinationView[] {
  const max = Math.max(0, ...rows.flatMap(({ ages }) => ages));
  return rows.map((row) => presentRow(row, now, max));
}

/** The figures over the list: how much mail of a destination counts, and the state in the URL that shows those destinations. */
const facts: [name: string, state: string, countOf: (row: QueueRow) => number][] = [
  ['Waiting', '', ({ counts }) => counts.queued + counts.deferred],
  ['Due now', 'due', ({ parked }) => parked],
  ['Being sent', 'sending', ({ counts }) => counts.sending],
  ['Held', 'held', ({ counts }) => counts.held],
  ['Blocked', 'blocked', ({ condition }) => (isBlocked(condition) ? 1 : 0)],
];

/** Destinations whose name or one of whose domains contains the text, and that have mail in the state. */
export function matching(rows: QueueRow[], { q, state }: { q: string; state: string }): QueueRow[] {
  const lowerCase = q.toLowerCase();
  const [, , countOf] = facts.find(([, name]) => name === state && name !== '') ?? [];
  return rows.filter(
    (row) =>
      [row.destination, ...row.domains].some((name) => name.includes(lowerCase)) &&
      (countOf === undefined || countOf(row) > 0),
  );
}

export function factsOf(rows: QueueRow[]): [name: string, count: number, state: string][] {
  return facts.map(([name, state, countOf]) => [
    name,
    rows.reduce((all, row) => all + countOf(row), 0),
    state,
  ]);
}

function isBlocked({ cause, blockedUntil }: QueueRow['condition']): boolean {
  return blockedUntil !== null || cause === 'no_server' || cause === 'no_source';
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
