/**
 * The screen of `postern top`: a pure function from a snapshot and the size of the terminal to lines, which never exceed
 * that size.
 */
import { styleText } from 'node:util';
import stringWidth from 'string-width';
import { sanitize } from '../../base/sanitize.ts';
import { briefly } from '../../operate/explain/destination-status.ts';
import { type QueueRow, totalOf } from '../../operate/explain/queue-rows-by-destination.ts';
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
import { local, span, timeOfDay } from './times.ts';
import { cut, fit } from './width.ts';

export interface Snapshot extends TrafficReport {
  at: number;
  hostname: string;
  queue: { lines: QueueRow[]; at: number };
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
  const top = [title(snapshot, columns), ...rates(snapshot, columns), ''];
  const lines = [...top, ...panels(snapshot, { columns, rows: size.rows - top.length - 1 }, options)];
  const filled = Array.from({ length: Math.max(size.rows - 1, 0) }, (_, at) => lines[at] ?? '');
  return [...filled, footer(snapshot, options, columns)].slice(-size.rows);
}

function title({ hostname, queue, at }: Snapshot, columns: number): string {
  const sum = (countOf: (line: QueueRow) => number) =>
    queue.lines.reduce((all, line) => all + countOf(line), 0);
  const held = sum(({ counts }) => counts.held);
  const oldest = Math.min(...queue.lines.flatMap(({ oldestAt }) => oldestAt ?? []));
  const facts = [
    `${grouped(sum(totalOf))} in the queue`,
    `${grouped(sum(({ parked }) => parked))} due`,
    ...(held > 0 ? [`${grouped(held)} held`] : []),
    ...(Number.isFinite(oldest) ? [`oldest ${span(Math.max(at - oldest, 0))}`] : []),
  ].join(', ');
  const clock = local(at).split(' ')[1]!;
  const left = cut(` Postern  ${sanitize(hostname)}   ${facts}`, columns - clock.length - 2);
  return styleText(
    'inverse',
    `${fit(left, columns - clock.length - 1)}${cut(clock, columns)} `.slice(0, columns),
  );
}

/** The columns to the left of the sparkline, and the one to its right. */
const [nameWidth, numberWidth, peakWidth] = [10, 9, 9];

function rates({ rates: all }: Snapshot, columns: number): string[] {
  const width = columns - nameWidth - numberWidth - peakWidth - 4;
  const minutes = [60, 45, 30, 15, 5].find((each) => each <= Math.min(width, minutesKept)) ?? 0;
  const spark =
    minutes === 0 ? '' : `  ${fit(`last ${minutes} minutes`, minutes)}${fit('peak', peakWidth, 'right')}`;
  const head = `${fit('', nameWidth)}${fit('a minute', numberWidth, 'right')}${spark}`;
  return [
    styleText('bold', cut(head, columns)),
    ...countedEvents.map((event) => rate(event, all[event], minutes, columns)),
  ];
}

function rate(
  event: CountedEvent,
  { perMinute, minutes }: TrafficReport['rates'][CountedEvent],
  shown: number,
  columns: number,
): string {
  const last = shown === 0 ? [] : minutes.slice(-shown);
  const peak = Math.max(...last.map((each) => each ?? 0), perMinute);
  const name = fit(event, Math.min(nameWidth, columns));
  const number = fit(grouped(perMinute), Math.min(numberWidth, columns - name.length), 'right');
  if (shown === 0) return coloured(event, name) + number;
  const graph = `  ${coloured(event, sparkline(last, peak))}`;
  return `${coloured(event, name)}${styleText('bold', number)}${graph}${dim(fit(grouped(peak), peakWidth, 'right'))}`;
}

interface Panel<T> {
  head: string;
  items: T[];
  row: (item: T) => string;
  empty: string;
}

/** Three tables, one below the other. The queue gets most of the rows; rows that one does not need go to the others. */
function panels(snapshot: Snapshot, { columns, rows }: Size, { sort }: RenderOptions): string[] {
  const queue: Panel<QueueRow> = {
    head: queueHead(columns),
    items: sorted(snapshot.queue.lines, sort),
    row: (each) => queueRow(each, snapshot.at, columns),
    empty: 'Nothing waits.',
  };
  const slowest: Panel<SlowDestination> = {
    head: slowHead(columns),
    items: snapshot.slowest,
    row: (each) => slowRow(each, columns),
    empty: 'Nothing was sent.',
  };
  const replies: Panel<LastReply> = {
    head: cut('LAST REPLIES', columns),
    items: snapshot.said,
    row: (each) => replyRow(each, columns),
    empty: 'Nothing was said.',
  };
  const wanted = [queue, slowest, replies].map(({ items }) => Math.max(items.length, 1));
  const [queueRows, slowRows, replyRows] = shares(wanted, rows - headLines);
  return [...panel(queue, queueRows!), '', ...panel(slowest, slowRows!), '', ...panel(replies, replyRows!)];
}

/** Three heads, and two lines between. */
const headLines = 5;

/** Each panel gets its minimum share or what it wants, then what is left goes to the queue, the replies, the slowest. */
function shares(wanted: number[], rows: number): number[] {
  const min = [0.4, 0.2, 0.4].map((share) => Math.max(Math.floor(share * rows), 1));
  const counts = wanted.map((want, at) => Math.min(want, min[at]!));
  for (const at of [0, 2, 1]) {
    const left = rows - counts.reduce((all, each) => all + each, 0);
    counts[at]! += Math.max(Math.min(left, wanted[at]! - counts[at]!), 0);
  }
  return counts;
}

function panel<T>({ head, items, row, empty }: Panel<T>, count: number): string[] {
  const rows = items.slice(0, count).map(row);
  return [styleText('bold', head), ...(rows.length > 0 ? rows : [dim(empty)])];
}

const [countWidth, ageWidth] = [5, 9];

/** On a wide terminal the name and the state, which is the last column, both grow. */
function queueName(columns: number): number {
  return Math.max(Math.floor(columns / 2) - 3 * countWidth - ageWidth + 6, 8);
}

function queueHead(columns: number): string {
  const numbers = ['WAIT', 'DUE', 'SEND'].map((each) => fit(each, countWidth, 'right')).join('');
  const left = fit('DESTINATION', queueName(columns)) + numbers;
  return cut(`${left}${fit('OLDEST', ageWidth, 'right')}  STATE`, columns);
}

function queueRow(line: QueueRow, now: number, columns: number): string {
  const { counts, parked, oldestAt, condition } = line;
  const numbers = [counts.queued + counts.deferred + counts.held, parked, counts.sending];
  const shown = numbers.map((each) => fit(compact(each), countWidth, 'right')).join('');
  const age = fit(oldestAt === null ? '-' : span(Math.max(now - oldestAt, 0)), ageWidth, 'right');
  const left = `${fit(sanitize(line.destination), queueName(columns))}${shown}${age}  `;
  const width = columns - stringWidth(left);
  if (width < 1) return cut(left, columns);
  const state = sanitize(briefly(condition, (time) => timeOfDay(time, now)));
  return left + stateColour(condition.is, cut(state, width));
}

function stateColour(is: QueueRow['condition']['is'], text: string): string {
  if (is === 'ok') return dim(text);
  const isWaiting = is === 'busy' || is === 'throttled' || is === 'greylisting';
  return styleText(isWaiting ? 'yellow' : 'red', text);
}

function slowHead(columns: number): string {
  const numbers = ['MEAN', 'WORST', 'ATTEMPTS'].map((each) => fit(each, 10, 'right')).join('');
  return cut(`${fit('SLOWEST, 5 MINUTES', slowName(columns))}${numbers}`, columns);
}

function slowRow({ destination, meanMs, worstMs, attempts }: SlowDestination, columns: number): string {
  const numbers = [span(meanMs), span(worstMs), grouped(attempts)]
    .map((each) => fit(each, 10, 'right'))
    .join('');
  return cut(`${fit(sanitize(destination), slowName(columns))}${numbers}`, columns);
}

function slowName(columns: number): number {
  return Math.max(Math.min(columns - 30, 50), 18);
}

function replyRow({ at, verb, destination, host, reply, times }: LastReply, columns: number): string {
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
