/** `postern logs`: the mail log of this data directory, its last lines, and with -f what is added. */
import type { Command } from 'commander';
import { type MailLine, mailLogFile } from '../maillog.ts';
import { domain, lines } from './arguments.ts';
import type { Context } from './context.ts';
import { tail } from './log-file.ts';
import { theOrganization } from './lookup.ts';
import { clean, coloured, dim, type Output } from './output.ts';
import { local } from './times.ts';

interface Options {
  follow?: boolean;
  org?: string;
  domain?: string;
  email?: string;
  lines: number;
}

type Line = MailLine & { time: string; event: string; msg: string };

const usualLines = 50;
const mostLines = 1_000_000;

export function logsCommands(program: Command, context: Context): void {
  program
    .command('logs')
    .description('Print the last lines of the mail log; with -f go on with what is added.')
    .option('-f, --follow', 'do not stop at the end')
    .option('--org <ORG>', 'only mail of this organization, by id or name')
    .option('--domain <D>', 'only mail to this recipient domain', domain)
    .option('--email <ID>', 'only this email, by its emailId')
    .option('-n, --lines <N>', 'how many lines', lines(0, mostLines), usualLines)
    .action((options: Options) => print(context, options));
}

async function print(context: Context, options: Options): Promise<void> {
  const { out } = context;
  const file = mailLogFile(context.config().dataDir);
  const log = await tail(file, options.lines, await filterOf(context, options));
  // A log may be followed for days, and the database needs no guest meanwhile.
  await context.close();
  if (out.json && !options.follow) out.print(log.last.map((line) => JSON.parse(line)));
  else for (const line of log.last) printLine(out, line);
  if (log.last.length === 0) out.note(`no such line in ${file}${options.follow ? ' yet' : ''}`);
  if (!options.follow) return log.close();
  for await (const added of log.follow()) for (const line of added) printLine(out, line);
}

async function filterOf({ db }: Context, options: Options): Promise<(line: string) => boolean> {
  const orgId = options.org === undefined ? null : (await theOrganization(await db(), options.org)).id;
  const emailId = options.email?.toLowerCase() ?? null;
  return (line) => {
    // Most lines of a large file are out before they are taken apart.
    if (emailId !== null && !line.includes(emailId)) return false;
    const read = readLine(line);
    if (read === null) return false;
    if (orgId !== null && read.orgId !== orgId) return false;
    if (emailId !== null && read.emailId !== emailId) return false;
    return options.domain === undefined || read.destination === options.domain;
  };
}

/** Null where the line is not whole: a process that was killed may leave one. */
function readLine(line: string): Line | null {
  try {
    const read = JSON.parse(line);
    return typeof read?.msg === 'string' ? read : null;
  } catch {
    return null;
  }
}

function printLine(out: Output, line: string): void {
  out.write(`${out.json ? line : readable(readLine(line)!, out.terminal)}\n`);
}

function readable({ time, event, msg, emailId }: Line, terminal: boolean): string {
  if (!terminal) return `${time} ${clean(msg)}`;
  const rest = clean(msg.slice(event.length).trim());
  const verb = coloured(event) + ' '.repeat(Math.max(9 - event.length, 0));
  return `${dim(local(Date.parse(time)))}  ${verb}  ${dim(emailId)}  ${rest}`;
}
