/** `postern queue summary`: what waits where, by its age as Postfix's qshape has it, and how each destination stands. */
import type { Command } from 'commander';
import { iso } from '../../../base/clock.ts';
import { briefly, reasonsOf } from '../../../operate/explain/destination-status.ts';
import { ageNames, readSummary } from '../../../operate/explain/queue-ages.ts';
import { type QueueRow, totalOf } from '../../../operate/explain/queue-rows-by-destination.ts';
import type { CommandContext } from '../../command-context.ts';
import type { Cell } from '../../render/output.ts';
import { timeOfDay } from '../../render/times.ts';

export function summaryCommand(queue: Command, { db, out, now, isServed }: CommandContext): void {
  queue
    .command('summary')
    .description(
      'Count queued mail by destination and age; show the status, next attempt and last reply of each destination.',
    )
    .option('--domains', 'one row per recipient domain instead of per destination')
    .action(async ({ domains: isByDomain = false }: { domains?: boolean }) => {
      const at = now();
      const lines = await readSummary(await db(), { now: at, isByDomain, served: await isServed() });
      const when = out.terminal && !out.json ? (time: number) => timeOfDay(time, at) : iso;
      const conditions = lines.map((line) => briefly(line.condition, when));
      const head = [isByDomain ? 'DOMAIN' : 'DESTINATION', 'TOTAL', ...ageNames, 'HELD', 'SENDING'];
      out.print(
        lines.map((line, index) => lineDocument(line, conditions[index]!)),
        {
          head,
          rows: lines.map((line) => cellsOf(line, isByDomain)),
          empty: 'Nothing waits.',
          cut: 'first',
          below: {
            head: [...(isByDomain ? ['at'] : []), '', 'oldest', 'next', 'last reply:'],
            rows: lines.map((line, index) => [
              ...(isByDomain ? [line.destination] : []),
              conditions[index]!,
              { time: line.oldestAt },
              { time: line.nextAttemptAt, due: line.nextAttemptAt !== null && line.nextAttemptAt < at },
              line.lastReply,
            ]),
          },
        },
      );
    });
}

function cellsOf(line: QueueRow, isByDomain: boolean): Cell[] {
  const name = isByDomain ? (line.domains[0] ?? line.destination) : line.destination;
  const numbers = [
    totalOf(line),
    ...ageNames.map((_, at) => line.ages[at] ?? 0),
    line.counts.held,
    line.counts.sending,
  ];
  return [name, ...numbers.map((count) => ({ count }))];
}

function lineDocument(line: QueueRow, condition: string) {
  const { destination, domains, counts, parked, state } = line;
  const suspension = line.condition.is === 'suspended' ? line.condition.suspension : null;
  return {
    destination,
    domain: domains.length === 1 ? domains[0] : null,
    domains,
    total: totalOf(line),
    ...counts,
    parked,
    ages: Object.fromEntries(ageNames.map((name, at) => [name, line.ages[at] ?? 0])),
    oldestAt: isoOrNull(line.oldestAt),
    dueAt: isoOrNull(line.dueAt),
    nextAttemptAt: isoOrNull(line.nextAttemptAt),
    lastReply: line.lastReply,
    lastReplyAt: isoOrNull(line.lastReplyAt),
    condition,
    connections: state?.connections ?? 0,
    limit: state?.limit ?? null,
    busySince: isoOrNull(state?.busySince ?? null),
    ...reasonsOf(line.condition),
    circuit: state?.circuit && {
      since: iso(state.circuit.since),
      failures: state.circuit.failures,
      nextProbeAt: iso(state.circuit.nextProbeAt),
      reason: state.circuit.reason,
    },
    suspension: suspension && {
      destination: suspension.destination,
      reason: suspension.reason,
      createdAt: iso(suspension.createdAt),
      until: iso(suspension.until),
    },
  };
}

function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time);
}
