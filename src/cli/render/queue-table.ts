/** The queue by destination and age, like Postfix's qshape, with the condition of each destination: `queue summary` and `top`. */

import { conditionDocument, conditionText, type When } from '#operate/condition/condition-words.ts';
import { ageNames, type QueueRow, totalOf } from '#operate/explain/queue-rows-by-destination.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import type { Cell } from './cells.ts';
import type { Rows } from './table.ts';

interface Options {
  /** A row for each recipient domain, not for each destination. */
  isByDomain: boolean;
  now: number;
  when: When;
}

export function queueTable(rows: QueueRow[], { isByDomain, now, when }: Options): Rows {
  return {
    head: [isByDomain ? 'DOMAIN' : 'DESTINATION', 'TOTAL', ...ageNames, 'HELD', 'SENDING'],
    rows: rows.map((row) => cellsOf(row, isByDomain)),
    empty: 'Nothing waits.',
    cut: 'first',
    below: {
      head: [...(isByDomain ? ['at'] : []), '', 'oldest', 'next', 'last reply:'],
      rows: rows.map((row) => [
        ...(isByDomain ? [row.destination] : []),
        conditionText(row.condition, when),
        { time: row.oldestAt, past: true },
        { time: row.nextAttemptAt, due: row.nextAttemptAt !== null && row.nextAttemptAt < now },
        row.lastReply,
      ]),
    },
  };
}

function cellsOf(row: QueueRow, isByDomain: boolean): Cell[] {
  const name = isByDomain ? (row.domains[0] ?? row.destination) : row.destination;
  const numbers = [totalOf(row), ...row.ages, row.counts.held, row.counts.sending];
  return [name, ...numbers.map((count) => ({ count }))];
}

export function queueDocument(row: QueueRow) {
  const { destination, domains, counts, parked, state, condition } = row;
  return {
    destination,
    domain: domains.length === 1 ? domains[0] : null,
    domains,
    total: totalOf(row),
    ...counts,
    parked,
    ages: Object.fromEntries(ageNames.map((name, at) => [name, row.ages[at]])),
    oldestAt: isoOrNull(row.oldestAt),
    dueAt: isoOrNull(row.dueAt),
    nextAttemptAt: isoOrNull(row.nextAttemptAt),
    lastReply: row.lastReply,
    lastReplyAt: isoOrNull(row.lastReplyAt),
    condition: conditionDocument(condition),
    connections: state?.connections ?? 0,
    limit: state?.limit ?? null,
    circuit: state?.circuit && {
      since: iso(state.circuit.since),
      failures: state.circuit.failures,
      nextProbeAt: iso(state.circuit.nextProbeAt),
      reason: state.circuit.reason,
    },
  };
}
