/**
 * The picture that `postern top` shows: a pure function from what is known, and the size of the terminal, to its lines,
 * none wider than the terminal and no more than it has rows.
 */
import { styleText } from 'node:util';
import { sanitize } from '../../base/sanitize.ts';
import { briefly } from '../../operate/explain/destination-status.ts';
import { type QueueRow, totalOf } from '../../operate/explain/queue-rows-by-destination.ts';
import {
  type CountedLines,
  minutesKept,
  type Said,
  type Seen,
  type Slow,
  verbs,
} from '../maillog/traffic.ts';
import { coloured, dim } from './cells.ts';
import { sparkline } from './sparkline.ts';
import { local, span, timeOfDay } from './times.ts';
import { cut, fit, widthOf } from './width.ts';

export interface Snapshot extends Seen {
  at: number;
  hostname: string;
  queue: { lines: QueueRow[]; at: number };
  /** Whether a server is running that sends mail. */
  isServed: boolean;
  /** Why the queue cannot be read. */
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

export function render(snapshot: Snapshot, size: Size, manner: RenderOptions): string[] {
  const columns = Math.max(size.columns, 1);
  const top = [title(snapshot, columns), ...rates(snapshot, columns), ''];
  const room = size.rows - top.length - 1;
  const lines = [...top, ...panels(snapshot, { columns, rows: room }, manner)];
  const filled = [...lines, ...Array<string>(Math.max(size.rows, 0)).fill('')].slice(
    0,
    Math.max(size.rows - 1, 0),
  );
  return [...filled, footer(snapshot, manner, columns)].slice(-size.rows);
}

function title({ hostname, queue, at }: Snapshot, columns: number): string {
  const sum = (countOf: (line: QueueRow) => number) =>
    queue.lines.reduce((all, line) => all + countOf(line), 0);
  const oldest = Math.min(...queue.lines.flatMap(({ oldestAt }) => oldestAt ?? []));
  const facts = [
    `${count(sum(totalOf))} in the queue`,
    `${count(sum(({ parked }) => parked))} due`,
    ...(sum(({ counts }) => counts.held) > 0 ? [`${count(sum(({ counts }) => counts.held))} held`] : []),
    ...(Number.isFinite(oldest) ? [`oldest ${span(Math.max(at - oldest, 0))}`] : []),
  ].join(', ');
  const clock = local(at).split(' ')[1]!;
  const left = cut(` Postern  ${sanitize(hostname)}   ${facts}`, columns - clock.length - 2);
  return styleText(
    'inverse',
    `${fit(left, columns - clock.length - 1)}${cut(clock, columns)} `.slice(0, columns),
  );
}

/** The name, the number, and what is on the right of the sparkline. */
const [nameWidth, numberWidth, peakWidth] = [10, 9, 9];

function rates({ rates: all }: Snapshot, columns: number): string[] {
  const room = columns - nameWidth - numberWidth - peakWidth - 4;
  const minutes = [60, 45, 30, 15, 5].find((each) => each <= Math.min(room, minutesKept)) ?? 0;
  const spark =
    minutes === 0 ? '' : `  ${fit(`last ${minutes} minutes`, minutes)}${fit('peak', peakWidth, 'right')}`;
  const head = `${fit('', nameWidth)}${fit('a minute', numberWidth, 'right')}${spark}`;
  return [
    styleText('bold', cut(head, columns)),
    ...verbs.map((verb) => rate(verb, all[verb], minutes, columns)),
  ];
}

function rate(
  verb: CountedLines,
  { perMinute, minutes }: Seen['rates'][CountedLines],
  shown: number,
  columns: number,
): string {
  const last = shown === 0 ? [] : minutes.slice(-shown);
  const peak = Math.max(...last.map((each) => each ?? 0), perMinute);
  const name = fit(verb, Math.min(nameWidth, columns));
  const number = fit(count(perMinute), Math.min(numberWidth, columns - name.length), 'right');
  if (shown === 0) return coloured(verb, name) + number;
  const graph = `  ${coloured(verb, sparkline(last, peak))}`;
  return `${coloured(verb, name)}${styleText('bold', number)}${graph}${dim(fit(count(peak), peakWidth, 'right'))}`;
}

/** Three tables below each other: the queue gets most of the room, what one does not need the others have. */
function panels(snapshot: Snapshot, { columns, rows }: Size, manner: RenderOptions): string[] {
  const queue = sorted(snapshot.queue.lines, manner.sort);
  const wants = [queue.length, snapshot.slowest.length, snapshot.said.length].map((each) =>
    Math.max(each, 1),
  );
  const [max, some, rest] = shares(wants, rows - headLines);
  return [
    ...table(
      queueHead(columns),
      queue.slice(0, max).map((line) => queueRow(line, snapshot.at, columns)),
      'Nothing waits.',
    ),
    ...[
      '',
      ...table(
        slowHead(columns),
        snapshot.slowest.slice(0, some).map((each) => slowRow(each, columns)),
        'Nothing was sent.',
      ),
    ],
    ...[
      '',
      ...table(
        saidHead(columns),
        snapshot.said.slice(0, rest).map((each) => saidRow(each, columns)),
        'Nothing was said.',
      ),
    ],
  ];
}

/** Three heads, and two lines between. */
const headLines = 5;

function shares(wants: number[], room: number): number[] {
  const min = [0.4, 0.2, 0.4].map((share) => Math.max(Math.floor(share * room), 1));
  const given = wants.map((want, at) => Math.min(want, min[at]!));
  for (const at of [0, 2, 1]) {
    const left = room - given.reduce((all, each) => all + each, 0);
    given[at]! += Math.max(Math.min(left, wants[at]! - given[at]!), 0);
  }
  return given;
}

function table(head: string, rows: string[], empty: string): string[] {
  return [styleText('bold', head), ...(rows.length > 0 ? rows : [dim(empty)])];
}

const [countWidth, ageWidth] = [5, 9];

/** Of a wide terminal both have more: the name, and the state on the right of all. */
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
  const shown = numbers.map((each) => fit(short.format(each), countWidth, 'right')).join('');
  const age = fit(oldestAt === null ? '-' : span(Math.max(now - oldestAt, 0)), ageWidth, 'right');
  const left = `${fit(sanitize(line.destination), queueName(columns))}${shown}${age}  `;
  const room = columns - widthOf(left);
  if (room < 1) return cut(left, columns);
  const state = sanitize(briefly(condition, (time) => timeOfDay(time, now)));
  return left + stateColour(condition.is, cut(state, room));
}

function stateColour(is: QueueRow['condition']['is'], text: string): string {
  if (is === 'ok') return dim(text);
  const isTheirs = is === 'busy' || is === 'throttled' || is === 'greylisting';
  return styleText(isTheirs ? 'yellow' : 'red', text);
}

function slowHead(columns: number): string {
  const numbers = ['MEAN', 'WORST', 'ATTEMPTS'].map((each) => fit(each, 10, 'right')).join('');
  return cut(`${fit('SLOWEST, 5 MINUTES', slowName(columns))}${numbers}`, columns);
}

function slowRow({ destination, meanMs, worstMs, attempts }: Slow, columns: number): string {
  const numbers = [span(meanMs), span(worstMs), count(attempts)]
    .map((each) => fit(each, 10, 'right'))
    .join('');
  return cut(`${fit(sanitize(destination), slowName(columns))}${numbers}`, columns);
}

function slowName(columns: number): number {
  return Math.max(Math.min(columns - 30, 50), 18);
}

function saidHead(columns: number): string {
  return cut('LAST REPLIES', columns);
}

function saidRow({ at, verb, destination, host, reply, times }: Said, columns: number): string {
  const who = sanitize(host ?? destination);
  const often = times > 1 && verb !== 'delivered' ? `${count(times)}× ` : '';
  const left = `${local(at).split(' ')[1]} ${fit(verb, nameWidth)}`;
  if (left.length >= columns) return cut(left, columns);
  const rest = cut(
    `${cut(who, Math.max(Math.floor(columns / 4), 10))}  ${often}${sanitize(reply)}`,
    columns - left.length,
  );
  return left.replace(verb, () => coloured(verb)) + rest;
}

/** The keys are always shown: they work also while the queue cannot be read and while no server runs. */
function footer(
  { queue, at, isServed, problem }: Snapshot,
  { sort, isPaused }: RenderOptions,
  columns: number,
): string {
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

const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact' });

function count(number: number): string {
  return whole.format(number);
}
