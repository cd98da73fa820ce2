/**
 * `postern top`: the status, how much mail moves, and the queue, on a screen whose size no line exceeds. A pure function from
 * a snapshot to lines.
 */
import { styleText } from 'node:util';
import type { Rates } from '#cli/maillog/traffic.ts';
import { type QueueRow, totalOf } from '#operate/explain/queue-rows-by-destination.ts';
import { type Status, statusDocument } from '#operate/status/read-status.ts';
import { iso } from '#platform/base/clock.ts';
import { sanitize } from '#platform/base/sanitize.ts';
import { span } from '#platform/base/span.ts';
import { coloured, dim, grouped } from './cells.ts';
import type { OutputBlock } from './output.ts';
import { queueDocument, queueTable } from './queue-table.ts';
import { type Size, statusHead, statusRows } from './status-view.ts';
import { tableLines } from './table.ts';
import { local, timeOfDay } from './times.ts';
import { cut, fit } from './width.ts';

export interface Snapshot {
  at: number;
  hostname: string;
  /** Null until it has been read. */
  status: Status | null;
  rates: Rates;
  queue: { rows: QueueRow[]; at: number };
  /** Whether a server is running that sends mail. */
  isServed: boolean;
  /** Why the queue cannot be read; null if it can. */
  problem: string | null;
}

const byName = (a: QueueRow, b: QueueRow) => (a.destination < b.destination ? -1 : 1);

const orders = {
  waiting: (a: QueueRow, b: QueueRow) => totalOf(b) - totalOf(a) || byName(a, b),
  due: (a: QueueRow, b: QueueRow) => b.parked - a.parked || byName(a, b),
  oldest: (a: QueueRow, b: QueueRow) => ageOrder(a) - ageOrder(b) || byName(a, b),
  name: byName,
};

const ageOrder = ({ oldestAt }: QueueRow) => oldestAt ?? Number.POSITIVE_INFINITY;

export type Sort = keyof typeof orders;
export const sorts = Object.keys(orders) as [Sort, ...Sort[]];

interface RenderOptions {
  sort: Sort;
  isPaused: boolean;
}

/** One line in so many is for what is wrong. */
const rowsPerNeed = 8;

export function render(snapshot: Snapshot, { columns, rows }: Size, options: RenderOptions): string[] {
  const { status, rates, queue, at } = snapshot;
  const needs = Math.max(Math.floor(rows / rowsPerNeed), 1);
  const sorted = queue.rows.toSorted(orders[options.sort]);
  const when = (time: number) => timeOfDay(time, at);
  const table = queueTable(sorted, { isByDomain: false, now: at, when });
  const lines = [
    title(snapshot, columns),
    ...(status ? [...statusHead(status, columns, needs), ''] : []),
    `${dim('A minute: ')}${Object.entries(rates)
      .map(([event, count]) => `${grouped(count)} ${coloured(event)}`)
      .join(', ')}`,
    '',
    ...(sorted.length === 0 ? [dim(table.empty)] : tableLines(table, at, columns).split('\n')),
  ];
  const filled = Array.from({ length: Math.max(rows - 1, 0) }, (_, row) => cut(lines[row] ?? '', columns));
  return [...filled, footer(snapshot, options, columns)];
}

function title({ hostname, queue, at }: Snapshot, columns: number): string {
  const sum = (countOf: (row: QueueRow) => number) => queue.rows.reduce((all, row) => all + countOf(row), 0);
  const counts = `${grouped(sum(totalOf))} in the queue, ${grouped(sum(({ parked }) => parked))} due`;
  const oldest = Math.min(...queue.rows.map(ageOrder));
  const age = Number.isFinite(oldest) ? `, oldest ${span(Math.max(at - oldest, 0))}` : '';
  const clock = ` ${local(at).split(' ')[1]} `;
  const left = ` Postern  ${sanitize(hostname)}   ${counts}${age}`;
  return styleText('inverse', cut(fit(left, columns - clock.length) + clock, columns));
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

/** One snapshot for --json. */
export function topDocument({ at, hostname, isServed, status, rates, queue }: Snapshot) {
  return {
    at: iso(at),
    hostname,
    isServed,
    status: status && statusDocument(status),
    rates,
    queue: { at: iso(queue.at), destinations: queue.rows.map(queueDocument) },
  };
}

/** One snapshot for --once and a pipe, where the first field tells the tables apart. */
export function topBlocks({ at, status, rates, queue }: Snapshot, columns: number): OutputBlock[] {
  return [
    {
      lines: status ? statusHead(status, columns) : [],
      rows: status ? statusRows(status).map((row) => ['status', ...row]) : [],
    },
    {
      kind: 'rate',
      head: ['', 'A MINUTE'],
      rows: Object.entries(rates).map(([event, count]) => [{ state: event }, count]),
      empty: '',
    },
    { kind: 'queue', ...queueTable(queue.rows, { isByDomain: false, now: at, when: iso }) },
  ];
}
