/**
 * `postern logs`: the mail log of this data directory, its last lines or all since a time, and with -f what is added.
 * A terminal gets columns, a pipe the log's own lines, JSON each; --json makes one document of them, a list, unless -f
 * leaves it without an end.
 */
import type { Command } from 'commander';
import { sanitizeJson } from '../../base/sanitize.ts';
import type { Db } from '../../db/engine/open.ts';
import { domainsOf } from '../../db/queue/destination-status-rows.ts';
import { mailLogFile } from '../../mail/mail-log.ts';
import { address, destination, domain, lines, logStates, moment, senderOrDomain } from '../args/arguments.ts';
import { requireOrganization } from '../args/lookup.ts';
import type { CommandContext } from '../command-context.ts';
import { type LogFile, openLog } from '../maillog/log-file.ts';
import {
  createKeep,
  createLogStory,
  type Filters,
  type Keep,
  type LogStory,
  readLine,
} from '../maillog/log-filter.ts';
import { dayOf, readable } from '../render/log-view.ts';
import { dim, type Output } from '../render/output.ts';
import { local } from '../render/times.ts';

interface Options {
  follow?: boolean;
  org?: string;
  domain?: string;
  destination?: string;
  to?: string;
  from?: string;
  email?: string;
  id?: string;
  status?: string[];
  since?: ReturnType<typeof moment>;
  lines?: number;
}

const defaultLines = 50;
const maxLines = 1_000_000;

export function logsCommands(program: Command, context: CommandContext): void {
  program
    .command('logs')
    .description('Print the last lines of the mail log; with -f, follow the log as it grows.')
    .option('-f, --follow', 'wait for new lines and print them')
    .option('--org <ORG>', 'only mail of this organization, by id or name')
    .option('--domain <D>', 'only mail to this recipient domain', domain)
    .option(
      '--destination <NAME>',
      'only mail to this destination, as named by `postern queue summary`',
      destination,
    )
    .option('--to <ADDRESS>', 'only mail to this recipient', address)
    .option('--from <SENDER>', 'only mail from this address or domain', senderOrDomain)
    .option('--email <ID>', 'only this email, by its emailId')
    .option(
      '--id <ID>',
      'all lines of the emails with this id: a request id, Message-ID, emailId, or a queue id in a reply',
    )
    .option('--status <S>', 'only lines of this event', logStates)
    .option(
      '--since <TIME>',
      'only lines since this time: 2026-01-31T12:00:00Z, or 2h for two hours ago',
      moment,
    )
    .option(
      '-n, --lines <N>',
      `number of lines; ${defaultLines} by default, or all with --since, --email or --id`,
      lines(0, maxLines),
    )
    .action((options: Options) => print(context, options));
}

async function print(context: CommandContext, options: Options): Promise<void> {
  const { out } = context;
  const file = mailLogFile(context.config().dataDir);
  const filters = await filtersOf(context, options);
  // A log may be followed for days, and the database needs no guest meanwhile.
  await context.close();
  const log = await openLog(file);
  const story = options.id === undefined ? undefined : createLogStory(options.id);
  if (story) await learn(log, story);
  const keep = createKeep(filters, story);
  const printer = createPrinter(out, options.follow === true, context.now());
  const isAll = (options.since ?? options.email ?? options.id) !== undefined;
  const max = options.lines ?? (isAll ? null : defaultLines);
  if (max === null) {
    for await (const portion of log.forward(filters.since)) printer.add(portion.filter(keep));
  } else printer.add(await lastOf(log, max, keep, filters.since));
  if (printer.count() === 0) out.note(`no line matches in ${file}${options.follow ? ' yet' : ''}`);
  if (options.follow) for await (const portion of log.follow()) printer.add(portion.filter(keep));
  printer.end();
  await log.close();
}

async function filtersOf({ db, now }: CommandContext, options: Options): Promise<Filters> {
  const { since } = options;
  return {
    orgId: options.org === undefined ? undefined : (await requireOrganization(await db(), options.org)).id,
    emailId: options.email?.toLowerCase(),
    domain: options.domain,
    destination:
      options.destination === undefined ? undefined : await destinationOf(await db(), options.destination),
    to: options.to,
    from: options.from,
    states: options.status,
    since: since && ('at' in since ? since.at : now() - since.ago),
  };
}

/** Its name may be that of a domain too. */
async function destinationOf(db: Db, name: string) {
  return { hosts: new Set(name.split(',')), domains: new Set([name, ...(await domainsOf(db, name))]) };
}

/** An id may be in a later line than those that are asked for: that of the remote host is in one of the last. */
async function learn(log: LogFile, story: LogStory): Promise<void> {
  const keep = createKeep({}, story);
  for await (const portion of log.forward()) for (const line of portion) keep(line);
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

/** With --json and an end the lines are elements of a list. */
function createPrinter(out: Output, isEndless: boolean, now: number) {
  const isList = out.json && !isEndless;
  const isReadable = out.terminal && !out.json;
  let count = 0;
  let day = local(now).split(' ')[0];
  if (isList) out.write('[');
  const write = (text: string) => {
    const line = isReadable ? readLine(text)! : null;
    if (!line)
      return out.write(
        isList ? `${count > 0 ? ',' : ''}\n  ${sanitizeJson(text)}` : `${sanitizeJson(text)}\n`,
      );
    if (dayOf(line) !== day) out.write(`${dim(dayOf(line))}\n`);
    day = dayOf(line);
    out.write(`${readable(line, out.columns)}\n`);
  };
  return {
    add(portion: string[]) {
      for (const text of portion) {
        write(text);
        count += 1;
      }
    },
    count: () => count,
    end: () => isList && out.write(count > 0 ? '\n]\n' : ']\n'),
  };
}
