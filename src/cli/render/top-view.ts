/**
 * The screen of `postern top`: a pure function from a snapshot and the size of the terminal to lines, which never exceed
 * that size.
 */
import { styleText } from 'node:util';
import stringWidth from 'string-width';
import { sanitize } from '../../base/sanitize.ts';
import { conditionText } from '../../operate/condition/condition-words.ts';
import { type QueueRow, totalOf } from '../../operate/explain/queue-rows-by-destination.ts';
import type { Status } from '../../operate/status/read-status.ts';
import {
  type CountedEvent,
  countedEvents,
  type LastReply,
  minutesKept,
  type SlowDestination,
  type TrafficReport,
} from '../maillog/traffic.ts';
import { coloured, compact, dim, grouped } from './cells.ts';
import { sparkline } from './sparkline.ts';
import { statusHead } from './status-view.ts';
import { local, span, timeOfDay } from './times.ts';
import { cut, fit } from './width.ts';

export interface Snapshot extends TrafficReport {
  at: number;
  hostname: string;
  queue: { lines: QueueRow[]; at: number };
  /** Null until it has been read. */
  status: Status | null;
  /** Whether a server is running that sends mail. */
  isServed: boolean;
  /** Why the queue cannot be read; null if it can. */
  problem: string | null;
}

export interface Size {
  columns: number;
  rows: number;
}

export const sorts = ['waiting', 'due', 'oldest', 'name'] as const;
type Sort = (typeof sorts)[number];

export interface RenderOptions {
  sort: Sort;
  isPaused: boolean;
}

export function render(snapshot: Snapshot, size: Size, options: RenderOptions): string[] {
  const columns = Math.max(size.columns, 1);
  const top = [
    title(snapshot, columns),
    ...needs(snapshot, { columns, rows: size.rows }),
    ...rates(snapshot, columns),
    '',
  ];
  const lines = [...top, ...panels(snapshot, { columns, rows: size.rows - top.length - 1 }, options)];
  const filled = Array.from({ length: Math.max(size.rows - 1, 0) }, (_, at) => lines[at] ?? '');
  return [...filled, footer(snapshot, options, columns)].slice(-size.rows);
}

function title({ hostname, queue, at }: Snapshot, columns: number): string {
  const sum = (countOf: (line: QueueRow) => number) =>
    queue.lines.reduce((all, line) => all + countOf(line), 0);
  const held = sum(({ counts }) => counts.held);
  const oldest = Math.min(...queue.lines.flatMap(({ oldestAt }) => oldestAt ?? []));
  const status = [
    `${grouped(sum(totalOf))} in the queue`,
    `${grouped(sum(({ parked }) => parked))} due`,
    ...(held > 0 ? [`${grouped(held)} held`] : []),
    ...(Number.isFinite(oldest) ? [`oldest ${span(Math.max(at - oldest, 0))}`] : []),
  ].join(', ');
  const clock = local(at).split(' ')[1]!;
  const left = cut(` Postern  ${sanitize(hostname)}   ${status}`, columns - clock.length - 2);
  const line = `${fit(left, columns - clock.length - 1)}${cut(clock, columns)} `;
  return styleText('inverse', line.slice(0, columns));
}

/** One line in so many is for what is wrong. */
const rowsPerNeed = 8;

function needs({ status }: Snapshot, { columns, rows }: Size): string[] {
  if (status === null) return [];
  return [...statusHead(status, columns, Math.max(Math.floor(rows / rowsPerNeed), 1)), ''];
}

/** The columns to the left of the sparkline, and the one to its right. */
const [nameWidth, numberWidth, peakWidth] = [10, 9, 9];

function rates({ rates: all }: Snapshot, columns: number): string[] {
  const width = columns - nameWidth - numberWidth - peakWidth - 4;
  const minutes = [60, 45, 30, 15, 5].find((each) => each <= Math.min(width, minutesKept)) ?? 0;
  const isQuiet = countedEvents.every((event) => peakOf(all[event], minutes) === 0);
  if (isQuiet)
    return [dim(cut(`No mail ${minutes === 0 ? 'now' : `in the last ${minutes} minutes`}.`, columns))];
  const spark =
    minutes === 0 ? '' : `  ${fit(`last ${minutes} minutes`, minutes)}${fit('peak', peakWidth, 'right')}`;
  const head = `${fit('', nameWidth)}${fit('a minute', numberWidth, 'right')}${spark}`;
  return [
    styleText('bold', cut(head, columns)),
    ...countedEvents.map((event) => rate(event, all[event], minutes, columns)),
  ];
}

type Rate = TrafficReport['rates'][CountedEvent];

function peakOf({ perMinute, minutes }: Rate, shown: number): number {
  const last = shown === 0 ? [] : minutes.slice(-shown);
  return Math.max(...last.map((each) => each ?? 0), perMinute);
}

function rate(event: CountedEvent, { perMinute, minutes }: Rate, shown: number, columns: number): string {
  const last = shown === 0 ? [] : minutes.slice(-shown);
  const peak = peakOf({ perMinute, minutes }, shown);
  const name = fit(event, Math.min(nameWidth, columns));
  const number = fit(grouped(perMinute), Math.min(numberWidth, columns - name.length), 'right');
  if (shown === 0) return coloured(event, name) + number;
  const graph = `  ${coloured(event, sparkline(last, peak))}`;
  return `${coloured(event, name)}${styleText('bold', number)}${graph}${dim(fit(grouped(peak), peakWidth, 'right'))}`;
}

/** Three tables, one below the other. The queue gets most of the rows; rows that one does not need go to the others. */
function panels(snapshot: Snapshot, { columns, rows }: Size, { sort }: RenderOptions): string[] {
  const first = <T>(items: T[], lineOf: (item: T) => string) => items.slice(0, Math.max(rows, 1)).map(lineOf);
  const queue = first(sorted(snapshot.queue.lines, sort), (row) => queueLine(row, snapshot.at, columns));
  const slowest = first(snapshot.slowest, (each) => slowLine(each, columns));
  const replies = first(snapshot.replies, (each) => replyLine(each, columns));
  const tables = [
    { head: queueHead(columns), lines: queue, empty: 'Nothing waits.' },
    { head: slowHead(columns), lines: slowest, empty: 'Nothing was sent.' },
    { head: cut('LAST REPLIES', columns), lines: replies, empty: 'No replies yet.' },
  ];
  const wanted = tables.map(({ lines }) => Math.max(lines.length, 1));
  const counts = shares(wanted, rows - headLines);
  return tables.flatMap(({ head, lines, empty }, at) => [
    ...(at > 0 ? [''] : []),
    styleText('bold', head),
    ...(lines.length > 0 ? lines.slice(0, counts[at]) : [dim(empty)]),
  ]);
}

/** Three heads, and two lines between. */
const headLines = 5;

/** Each panel gets its minimum or as many lines as it has; the remaining lines go to the queue, the replies, the slowest. */
function shares(wanted: number[], rows: number): number[] {
  const min = [0.4, 0.2, 0.4].map((share) => Math.max(Math.floor(share * rows), 1));
  const counts = wanted.map((want, at) => Math.min(want, min[at]!));
  for (const at of [0, 2, 1]) {
    const left = rows - counts.reduce((all, each) => all + each, 0);
    counts[at]! += Math.max(Math.min(left, wanted[at]! - counts[at]!), 0);
  }
  return counts;
}

const [countWidth, ageWidth] = [5, 9];

/** On a wide terminal the name and the state, which is the last column, both grow. */
function queueColumns(name: string, counts: string[], age: string, columns: number): string {
  const width = Math.max(Math.floor(columns / 2) - 3 * countWidth - ageWidth + 6, 8);
  const numbers = counts.map((each) => fit(each, countWidth, 'right')).join('');
  return `${fit(name, width)}${numbers}${fit(age, ageWidth, 'right')}  `;
}

function queueHead(columns: number): string {
  return cut(`${queueColumns('DESTINATION', ['WAIT', 'DUE', 'SEND'], 'OLDEST', columns)}STATE`, columns);
}

function queueLine(row: QueueRow, now: number, columns: number): string {
  const { counts, parked, oldestAt, condition } = row;
  const numbers = [counts.queued + counts.deferred + counts.held, parked, counts.sending];
  const age = oldestAt === null ? '-' : span(Math.max(now - oldestAt, 0));
  const left = queueColumns(sanitize(row.destination), numbers.map(compact), age, columns);
  const width = columns - stringWidth(left);
  if (width < 1) return cut(left, columns);
  const state = sanitize(conditionText(condition, (time) => timeOfDay(time, now)));
  return left + conditionColour(condition, cut(state, width));
}

function conditionColour({ severity }: QueueRow['condition'], text: string): string {
  return severity === 'ok' ? dim(text) : styleText(severity === 'act' ? 'red' : 'yellow', text);
}

function slowHead(columns: number): string {
  return slowColumns('SLOWEST, 5 MINUTES', ['MEAN', 'WORST', 'ATTEMPTS'], columns);
}

function slowLine({ destination, meanMs, worstMs, attempts }: SlowDestination, columns: number): string {
  return slowColumns(sanitize(destination), [span(meanMs), span(worstMs), grouped(attempts)], columns);
}

function slowColumns(name: string, numbers: string[], columns: number): string {
  const width = Math.max(Math.min(columns - 30, 50), 18);
  return cut(fit(name, width) + numbers.map((each) => fit(each, 10, 'right')).join(''), columns);
}

function replyLine({ at, verb, destination, host, reply, times }: LastReply, columns: number): string {
  const name = cut(sanitize(host ?? destination), Math.max(Math.floor(columns / 4), 10));
  const repeated = times > 1 && verb !== 'delivered' ? `${grouped(times)}× ` : '';
  const left = `${local(at).split(' ')[1]} ${fit(verb, nameWidth)}`;
  if (left.length >= columns) return cut(left, columns);
  const rest = cut(`${name}  ${repeated}${sanitize(reply)}`, columns - left.length);
  return left.replace(verb, () => coloured(verb)) + rest;
}

/** The keys are always shown, because they work even if the queue cannot be read or no server runs. */
function footer(snapshot: Snapshot, { sort, isPaused }: RenderOptions, columns: number): string {
  const { queue, at, isServed, problem } = snapshot;
  const alarm = problem ?? (isServed ? null : 'no server is running: no mail is sent');
  const age = at - queue.at >= 10_000 ? `queue as of ${span(at - queue.at)} ago` : '';
  const keys = `${isPaused ? ' PAUSED ' : ''} q quit   s sort by ${sort}   p ${isPaused ? 'go on' : 'pause'}`;
  const text = cut(`${keys}   ${sanitize(alarm ?? age)}`.trimEnd(), columns);
  if (alarm !== null) return styleText('red', text);
  return isPaused ? styleText('yellow', text) : dim(text);
}

function sorted(lines: QueueRow[], sort: Sort): QueueRow[] {
  const byName = (a: QueueRow, b: QueueRow) => (a.destination < b.destination ? -1 : 1);
  const orders: Record<Sort, (a: QueueRow, b: QueueRow) => number> = {
    waiting: (a, b) => totalOf(b) - totalOf(a) || byName(a, b),
    due: (a, b) => b.parked - a.parked || byName(a, b),
    oldest: (a, b) =>
      (a.oldestAt ?? Number.POSITIVE_INFINITY) - (b.oldestAt ?? Number.POSITIVE_INFINITY) || byName(a, b),
    name: byName,
  };
  return lines.toSorted(orders[sort]);
}
