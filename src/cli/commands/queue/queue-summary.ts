/** `postern queue summary`: waiting mail by destination and age, with each destination's condition. */
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { queueDocument, queueTable } from '#cli/render/queue-table.ts';
import { timeOfDay } from '#cli/render/times.ts';
import { readSummary } from '#operate/explain/queue-rows-by-destination.ts';
import { iso } from '#platform/base/clock.ts';

export function summaryCommand(queue: Command, { db, out, now: clock, isServed }: CommandContext): void {
  queue
    .command('summary')
    .description(
      'Count queued mail by destination and age; show the status, next attempt and last reply of each destination.',
    )
    .option('--domains', 'one row per recipient domain instead of per destination')
    .action(async ({ domains: isByDomain = false }: { domains?: boolean }) => {
      const now = clock();
      const rows = await readSummary(await db(), { now, isByDomain, served: await isServed() });
      const when = out.terminal ? (time: number) => timeOfDay(time, now) : iso;
      out.print(rows.map(queueDocument), queueTable(rows, { isByDomain, now, when }));
    });
}
