/** `postern queue`: what waits, by destination or one by one. */
import type { Command } from 'commander';
import { iso } from '../clock.ts';
import { listQueue, type QueueEntry, type QueueSummary, summarizeQueue } from '../db/queue-view.ts';
import type { DeliveryStatus } from '../nouns.ts';
import { replyText } from '../outcome.ts';
import { choice, domain, lines } from './arguments.ts';
import type { Context } from './context.ts';
import { theOrganization } from './lookup.ts';
import type { Output } from './output.ts';

const states: Record<DeliveryStatus, true> = {
  ...{ queued: true, sending: true, deferred: true, held: true },
  ...{ delivered: true, bounced: true, complained: true, expired: true },
  ...{ canceled: true, suppressed: true, insufficient_credit: true },
};

const usualLimit = 100;
const mostEntries = 100_000;

interface ListOptions {
  domain?: string;
  org?: string;
  status?: DeliveryStatus;
  limit: number;
}

export function queueCommands(program: Command, { db, out }: Context): void {
  const queue = program.command('queue').description('What waits to be delivered.');

  queue
    .command('summary')
    .description('Count what waits, one line a recipient domain, the longest wait first.')
    .action(async () => printSummary(out, await summarizeQueue(await db())));

  queue
    .command('list')
    .description('List what waits, oldest first; with --status anything in that state.')
    .option('--domain <D>', 'only mail to this recipient domain', domain)
    .option('--org <ORG>', 'only mail of this organization, by id or name')
    .option(
      '--status <S>',
      `one of ${Object.keys(states).join(', ')}`,
      choice('a status', Object.keys(states)),
    )
    .option('--limit <N>', 'how many at most', lines(1, mostEntries), usualLimit)
    .action(async ({ org, ...filter }: ListOptions) => {
      const orgId = org === undefined ? undefined : (await theOrganization(await db(), org)).id;
      const found = await listQueue(await db(), { ...filter, orgId, limit: filter.limit + 1 });
      printEntries(out, found.slice(0, filter.limit));
      if (found.length > filter.limit)
        out.note(`there is more; --limit N shows up to N, not ${filter.limit}`);
    });
}

function printSummary(out: Output, summaries: QueueSummary[]): void {
  out.print(
    summaries.map(({ oldestAt, nextAttemptAt, ...counts }) => ({
      ...counts,
      oldestAt: iso(oldestAt),
      nextAttemptAt: nextAttemptAt === null ? null : iso(nextAttemptAt),
    })),
    {
      head: ['DOMAIN', 'QUEUED', 'SENDING', 'DEFERRED', 'HELD', 'OLDEST', 'NEXT'],
      rows: summaries.map(({ domain: name, queued, sending, deferred, held, oldestAt, nextAttemptAt }) => [
        ...[name, queued, sending, deferred, held],
        { time: oldestAt },
        { time: nextAttemptAt },
      ]),
      empty: 'Nothing waits.',
    },
  );
}

function printEntries(out: Output, entries: QueueEntry[]): void {
  out.print(
    entries.map(({ createdAt, nextAttemptAt, lastReply, ...entry }) => ({
      ...entry,
      createdAt: iso(createdAt),
      nextAttemptAt: nextAttemptAt === null ? null : iso(nextAttemptAt),
      lastResponse: lastReply,
    })),
    {
      head: ['EMAIL ID', 'STATUS', 'ATTEMPTS', 'ACCEPTED', 'NEXT', 'RECIPIENT', 'LAST REPLY'],
      rows: entries.map(({ emailId, status, attempts, createdAt, nextAttemptAt, recipient, lastReply }) => [
        ...[emailId, { state: status }, attempts],
        { time: createdAt },
        { time: nextAttemptAt },
        recipient,
        lastReply && replyText(lastReply),
      ]),
      empty: 'There is no such mail.',
      cut: true,
    },
  );
}
