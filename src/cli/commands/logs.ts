/**
 * `postern logs`: the last lines of the mail log of this data directory, or all since a time; with -f, also new ones.
 * A terminal gets columns, a pipe the JSON lines of the log. With --json they form one list, except with -f, because that
 * has no end.
 */
import type { Command } from 'commander';
import { validate as isUuid } from 'uuid';
import {
  address,
  lines,
  logStates,
  type Moment,
  moment,
  senderOrDomain,
  timeOf,
} from '#cli/args/arguments.ts';
import { emailIs, organizationId, requireEmailId } from '#cli/args/lookup.ts';
import { addMailFilters, type MailFilters } from '#cli/args/mail-filters.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { findEmailsInLog } from '#cli/maillog/find-emails.ts';
import { type LogFile, openLog } from '#cli/maillog/log-file.ts';
import {
  createIdSearch,
  createKeep,
  type Filters,
  type Keep,
  type LogLine,
  readLine,
} from '#cli/maillog/log-filter.ts';
import { createAttemptMerge, isOutcome } from '#cli/maillog/merge-attempts.ts';
import { dayOf, readable } from '#cli/render/log-view.ts';
import { dim } from '#cli/render/output.ts';
import { local } from '#cli/render/times.ts';
import { domainsOf } from '#mail/record/rows/destination-status-rows.ts';
import { sanitizeJson } from '#platform/base/sanitize.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

interface Options extends MailFilters {
  follow?: boolean;
  to?: string;
  from?: string;
  email?: string;
  id?: string;
  status?: string[];
  since?: Moment;
  until?: Moment;
  lines?: number;
}

const defaultLines = 50;
const maxLines = 1_000_000;

export function logsCommands(program: Command, context: CommandContext): void {
  const logs = program
    .command('logs')
    .description('Print the last lines of the mail log; with -f, follow the log as it grows.')
    .option('-f, --follow', 'wait for new lines and print them');
  addMailFilters(logs, 'only mail')
    .option('--to <ADDRESS>', 'only mail to this recipient', address)
    .option('--from <SENDER>', 'only mail from this address or domain', senderOrDomain)
    .option('--email <ID>', `only this email: ${emailIs}`)
    .option(
      '--id <ID>',
      'all lines of the emails with this id: a request id, Message-ID, emailId or its end, or a queue id in a reply; of an address, those of its newest mail',
    )
    .option('--status <S>', 'only lines of this event', logStates)
    .option(
      '--since <TIME>',
      'only lines since this time: 2026-01-31T12:00:00Z, or 2h for two hours ago',
      moment,
    )
    .option('--until <TIME>', 'only lines before this time', moment)
    .option(
      '-n, --lines <N>',
      `number of lines; ${defaultLines} by default, or all with --since, --email or --id`,
      lines(0, maxLines),
    )
    .action((options: Options) => {
      if (options.follow && options.until)
        logs.error('error: new lines are never before --until; give either -f or --until', { exitCode: 2 });
      return print(context, options);
    });
}

async function print(context: CommandContext, options: Options): Promise<void> {
  const file = mailLogFile(context.config().dataDir);
  const filters = await filtersOf(context, options);
  // Following may take days; the database connection is not needed for it.
  await context.close();
  const log = await openLog(file);
  try {
    await printLog(context, log, options, filters);
  } finally {
    await log.close();
  }
}

async function printLog(
  context: CommandContext,
  log: LogFile,
  options: Options,
  filters: Filters,
): Promise<void> {
  const { out } = context;
  const search = options.id === undefined ? undefined : createIdSearch(options.id);
  if (search) await findEmailsInLog(log, search);
  const keep = createKeep(filters, search);
  const isMerged = filters.states?.every((state) => !isOutcome(state)) !== true;
  const printer = createPrinter(context, options.follow === true, isMerged);
  const isAll = (options.since ?? options.email ?? options.id) !== undefined;
  const max = options.lines ?? (isAll ? null : defaultLines);
  if (max === null) {
    for await (const portion of log.forward(filters.since)) printer.add(portion.filter(keep));
  } else printer.add(await lastOf(log, max, keep, filters.since));
  if (printer.count() === 0)
    out.note(`no line matches in ${mailLogFile(context.config().dataDir)}${options.follow ? ' yet' : ''}`);
  if (options.follow) {
    for await (const portion of log.follow(context.abortOn())) printer.add(portion.filter(keep));
  }
  printer.end();
}

async function filtersOf(context: CommandContext, options: Options): Promise<Filters> {
  const { db, now } = context;
  const { org, domain, destination, email, to, from, status: states, since, until } = options;
  return {
    orgId: org === undefined ? undefined : await organizationId(await db(), org),
    emailId: email && (isUuid(email) ? email.toLowerCase() : await requireEmailId(context, email)),
    domain,
    destination: destination === undefined ? undefined : await destinationOf(await db(), destination),
    to,
    from,
    states,
    since: since && timeOf(since, now()),
    until: until && timeOf(until, now()),
  };
}

/** A destination may have the name of a domain. */
async function destinationOf(db: Db, name: string) {
  return { hosts: new Set(name.split(',')), domains: new Set([name, ...(await domainsOf(db, name))]) };
}

async function lastOf(log: LogFile, max: number, keep: Keep, since = 0): Promise<string[]> {
  const last: string[][] = [];
  let count = 0;
  if (max === 0) return [];
  for await (const portion of log.backward(keep, since)) {
    last.unshift(portion);
    count += portion.length;
    if (count >= max) break;
  }
  return last.flat().slice(-max);
}

/** `isMerged`: a terminal shows an attempt and its outcome as one line if they say the same. */
function createPrinter({ out, now }: CommandContext, isEndless: boolean, isMerged: boolean) {
  const isList = out.json && !isEndless;
  const isReadable = out.terminal && !out.json;
  let count = 0;
  const merge = isReadable && isMerged ? createAttemptMerge() : null;
  let day = local(now()).split(' ')[0];
  if (isList) out.write('[');
  const show = (line: LogLine) => {
    if (dayOf(line) !== day) out.write(`${dim(dayOf(line))}\n`);
    day = dayOf(line);
    out.write(`${readable(line, out.columns)}\n`);
  };
  const write = (text: string) => {
    if (isList) return out.write(`${count > 0 ? ',' : ''}\n  ${sanitizeJson(text)}`);
    if (!isReadable) return out.write(`${sanitizeJson(text)}\n`);
    const line = readLine(text)!;
    for (const each of merge?.add(line) ?? [line]) show(each);
  };
  return {
    add(portion: string[]) {
      for (const text of portion) {
        write(text);
        count += 1;
      }
      for (const line of merge?.flush(now()) ?? []) show(line);
    },
    count: () => count,
    end() {
      for (const line of merge?.flush() ?? []) show(line);
      if (isList) out.write(count > 0 ? '\n]\n' : ']\n');
    },
  };
}
