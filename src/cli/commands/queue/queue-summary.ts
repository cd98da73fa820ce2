/** `postern queue summary`: waiting mail by destination and age, like Postfix's qshape, with each destination's status. */
import type { Command } from 'commander';
import { iso, isoOrNull } from '../../../base/clock.ts';
import { conditionText, reasonsOf } from '../../../operate/condition/condition-words.ts';
import { ageNames, readSummary } from '../../../operate/explain/queue-ages.ts';
import { type QueueRow, totalOf } from '../../../operate/explain/queue-rows-by-destination.ts';
import type { CommandContext } from '../../command-context.ts';
import type { Cell } from '../../render/output.ts';
import { timeOfDay } from '../../render/times.ts';
import { documentOf } from './queue-suspend.ts';

export function summaryCommand(queue: Command, { db, out, now, isServed }: CommandContext): void {
  queue
    .command('summary')
    .description(
      'Count queued mail by destination and age; show the status, next attempt and last reply of each destination.',
    )
    .option('--domains', 'one row per recipient domain instead of per destination')
    .action(async ({ domains: isByDomain = false }: { domains?: boolean }) => {
      const at = now();
      const rows = await readSummary(await db(), { now: at, isByDomain, served: await isServed() });
      const when = out.terminal && !out.json ? (time: number) => timeOfDay(time, at) : iso;
      const conditions = rows.map((row) => conditionText(row.condition, when));
      const head = [isByDomain ? 'DOMAIN' : 'DESTINATION', 'TOTAL', ...ageNames, 'HELD', 'SENDING'];
      out.print(
        rows.map((row, index) => rowDocument(row, conditions[index]!)),
        {
          head,
          rows: rows.map((row) => cellsOf(row, isByDomain)),
          empty: 'Nothing waits.',
          cut: 'first',
          below: {
            head: [...(isByDomain ? ['at'] : []), '', 'oldest', 'next', 'last reply:'],
            rows: rows.map((row, index) => [
              ...(isByDomain ? [row.destination] : []),
              conditions[index]!,
              { time: row.oldestAt },
              { time: row.nextAttemptAt, due: row.nextAttemptAt !== null && row.nextAttemptAt < at },
              row.lastReply,
            ]),
          },
        },
      );
    });
}

function cellsOf(row: QueueRow, isByDomain: boolean): Cell[] {
  const name = isByDomain ? (row.domains[0] ?? row.destination) : row.destination;
  const numbers = [
    totalOf(row),
    ...ageNames.map((_, at) => row.ages[at] ?? 0),
    row.counts.held,
    row.counts.sending,
  ];
  return [name, ...numbers.map((count) => ({ count }))];
}

function rowDocument(row: QueueRow, condition: string) {
  const { destination, domains, counts, parked, state } = row;
  const { order } = row.condition;
  const suspension = order?.kind === 'suspend' ? order : null;
  return {
    destination,
    domain: domains.length === 1 ? domains[0] : null,
    domains,
    total: totalOf(row),
    ...counts,
    parked,
    ages: Object.fromEntries(ageNames.map((name, at) => [name, row.ages[at] ?? 0])),
    oldestAt: isoOrNull(row.oldestAt),
    dueAt: isoOrNull(row.dueAt),
    nextAttemptAt: isoOrNull(row.nextAttemptAt),
    lastReply: row.lastReply,
    lastReplyAt: isoOrNull(row.lastReplyAt),
    condition,
    connections: state?.connections ?? 0,
    limit: state?.limit ?? null,
    busySince: isoOrNull(state?.busySince ?? null),
    ...reasonsOf(row.condition),
    circuit: state?.circuit && {
      since: iso(state.circuit.since),
      failures: state.circuit.failures,
      nextProbeAt: iso(state.circuit.nextProbeAt),
      reason: state.circuit.reason,
    },
    suspension: suspension && documentOf({ ...suspension, until: suspension.until! }),
  };
}
