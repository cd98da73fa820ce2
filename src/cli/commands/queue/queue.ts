/** `postern queue`, and `queue list`; its other commands are in the files beside this one. */
import type { Command } from 'commander';
import { address, choice, lines } from '#cli/args/arguments.ts';
import { organizationId } from '#cli/args/lookup.ts';
import { addMailFilters, type MailFilters } from '#cli/args/mail-filters.ts';
import { type CommandContext, notServed } from '#cli/command-context.ts';
import type { Output } from '#cli/render/output.ts';
import { replyText } from '#mail/deliver/outcome.ts';
import { listQueue, type QueueEntry } from '#mail/queue/rows/queue-view.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import { type DeliveryStatus, deliveryStates } from '#platform/values/glossary.ts';
import { actionCommands } from './queue-actions.ts';
import { ruleCommands } from './queue-rules.ts';
import { summaryCommand } from './queue-summary.ts';
import { suspensionCommands } from './queue-suspend.ts';
import { traceCommand } from './queue-trace.ts';

const defaultLimit = 100;
const maxEntries = 100_000;

interface ListOptions extends MailFilters {
  status?: DeliveryStatus;
  to?: string;
  limit: number;
}

export function queueCommands(program: Command, context: CommandContext): void {
  const queue = program
    .command('queue')
    .description('Show the queue, and retry, hold, release or cancel its mail.');
  queue.hook('postAction', async () => {
    if (!(await context.isServed())) context.out.warn(notServed);
  });
  summaryCommand(queue, context);
  listCommand(queue, context);
  actionCommands(queue, context);
  suspensionCommands(queue, context);
  ruleCommands(queue, context);
  traceCommand(queue, context);
}

function listCommand(queue: Command, { db, out, now }: CommandContext): void {
  const list = queue
    .command('list')
    .description('List queued mail, oldest first; with --status, mail in that state, such as scheduled.');
  addMailFilters(list, 'only mail')
    .option('--status <S>', `one of ${deliveryStates.join(', ')}`, choice('a status', deliveryStates))
    .option('--to <ADDRESS>', 'only mail to this address', address)
    .option('--limit <N>', 'how many at most', lines(1, maxEntries), defaultLimit)
    .action(async ({ org, ...filter }: ListOptions) => {
      const orgId = await organizationId(await db(), org);
      const found = await listQueue(await db(), { ...filter, orgId, limit: filter.limit + 1 }, now());
      printEntries(out, found.slice(0, filter.limit));
      if (found.length > filter.limit)
        out.note(`only the first ${filter.limit} are shown; --limit N shows more`);
    });
}

function printEntries(out: Output, entries: QueueEntry[]): void {
  out.print(
    entries.map(({ id: _, createdAt, nextAttemptAt, dueSince, lastReply, ...entry }) => ({
      ...entry,
      createdAt: iso(createdAt),
      nextAttemptAt: isoOrNull(nextAttemptAt),
      dueSince: isoOrNull(dueSince),
      lastResponse: lastReply,
    })),
    {
      head: ['EMAIL ID', 'STATUS', 'TRIES', 'ACCEPTED', 'NEXT', 'RECIPIENT', 'LAST REPLY'],
      rows: entries.map((entry) => [
        { id: entry.emailId },
        { state: entry.status },
        entry.attempts,
        { time: entry.createdAt, past: true },
        { time: entry.nextAttemptAt, due: entry.dueSince !== null },
        entry.recipient,
        entry.lastReply && replyText(entry.lastReply),
      ]),
      empty: 'No mail matches.',
      cut: 'last',
    },
  );
}
