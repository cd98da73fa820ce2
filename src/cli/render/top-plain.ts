/** One snapshot of `postern top`, for --json, --once and a pipe, in which the first field tells the tables apart. */
import { iso, isoOrNull } from '../../base/clock.ts';
import { conditionText, reasonsOf } from '../../operate/condition/condition-words.ts';
import { type QueueRow, totalOf } from '../../operate/explain/queue-rows-by-destination.ts';
import { statusDocument } from '../../operate/status/read-status.ts';
import { countedEvents } from '../maillog/traffic.ts';
import type { Block } from './output.ts';
import { statusHead, statusRows } from './status-view.ts';
import type { Snapshot } from './top-view.ts';

export function documentOf(snapshot: Snapshot) {
  return {
    at: iso(snapshot.at),
    hostname: snapshot.hostname,
    isServed: snapshot.isServed,
    status: snapshot.status && statusDocument(snapshot.status),
    rates: snapshot.rates,
    queue: { at: iso(snapshot.queue.at), destinations: snapshot.queue.lines.map(queueDocument) },
    slowest: snapshot.slowest.map(({ meanMs, ...slow }) => ({ ...slow, meanMs: Math.round(meanMs) })),
    replies: snapshot.replies.map(({ at, ...reply }) => ({ at: iso(at), ...reply })),
  };
}

function queueDocument(line: QueueRow) {
  const { destination, counts, parked, oldestAt, nextAttemptAt, condition, state } = line;
  return {
    destination,
    total: totalOf(line),
    ...counts,
    due: parked,
    oldestAt: isoOrNull(oldestAt),
    nextAttemptAt: isoOrNull(nextAttemptAt),
    condition: conditionText(condition, iso),
    ...reasonsOf(condition),
    connections: state?.connections ?? 0,
    limit: state?.limit ?? null,
  };
}

/** `columns`: the width of the terminal. */
export function blocksOf({ status, rates, queue, slowest, replies }: Snapshot, columns: number): Block[] {
  return [
    {
      lines: status ? statusHead(status, columns) : [],
      rows: status ? statusRows(status).map((row) => ['status', ...row]) : [],
    },
    {
      kind: 'rate',
      head: ['', 'A MINUTE'],
      rows: countedEvents.map((event) => [{ state: event }, rates[event].perMinute]),
      empty: '',
    },
    {
      kind: 'queue',
      head: ['DESTINATION', 'TOTAL', 'DUE', 'SENDING', 'OLDEST', 'STATE'],
      rows: queue.lines.map((line) => [
        line.destination,
        { count: totalOf(line) },
        { count: line.parked },
        { count: line.counts.sending },
        { time: line.oldestAt },
        conditionText(line.condition, iso),
      ]),
      empty: 'Nothing waits.',
      cut: 'first',
    },
    {
      kind: 'slow',
      head: ['SLOWEST', 'MEAN MS', 'WORST MS', 'ATTEMPTS'],
      rows: slowest.map((slow) => [slow.destination, Math.round(slow.meanMs), slow.worstMs, slow.attempts]),
      empty: 'Nothing was sent.',
      cut: 'first',
    },
    {
      kind: 'reply',
      head: ['SAID', '', 'HOST', 'TIMES', 'REPLY'],
      rows: replies.map(({ at, verb, host, destination, times, reply }) => [
        { time: at },
        { state: verb },
        host ?? destination,
        { count: times },
        reply,
      ]),
      empty: 'No replies yet.',
      cut: 'last',
    },
  ];
}
