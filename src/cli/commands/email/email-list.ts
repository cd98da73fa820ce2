/** `postern email list`: the emails of an organization, the newest first. */
import type { Command } from 'commander';
import {
  choice,
  lines,
  type Moment,
  moment,
  recipientOrDomain,
  senderOrDomain,
  timeOf,
} from '#cli/args/arguments.ts';
import { requireOwner, withOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import type { Output } from '#cli/render/output.ts';
import { type EmailSummary, type Search, searchEmails } from '#mail/record/rows/search-emails.ts';
import { iso } from '#platform/base/clock.ts';
import { compareKey } from '#platform/values/address.ts';
import { deliveryStates, serverOrgId } from '#platform/values/glossary.ts';
import { type EmailStatus, mixedStates } from '#platform/values/states.ts';

const defaultLimit = 50;
const maxEmails = 100_000;
const statuses = [...deliveryStates, ...mixedStates] as const;

interface Options {
  org?: string;
  server?: true;
  status?: EmailStatus;
  to?: string;
  from?: string;
  subject?: string;
  tag?: string;
  since?: Moment;
  until?: Moment;
  limit: number;
}

export function listCommand(email: Command, context: CommandContext): void {
  const command = email
    .command('list')
    .description('List the emails of an organization, newest first.')
    .option(
      '--status <S>',
      `of the email or a recipient: ${statuses.join(', ')}`,
      choice('a status', statuses),
    )
    .option('--to <RECIPIENT>', 'only to this address or domain', recipientOrDomain)
    .option('--from <SENDER>', 'only from this address or domain', senderOrDomain)
    .option('--subject <WORDS>', 'only with these words in the subject')
    .option('--tag <TAG>', 'only with this tag: NAME=VALUE, or a name or value')
    .option('--since <TIME>', 'only since this time: 2026-01-31T12:00:00Z, or 2h for two hours ago', moment)
    .option('--until <TIME>', 'only before this time', moment)
    .option('--server', 'mail of this server itself: invitations, password resets, notices')
    .option('--limit <N>', 'how many at most', lines(1, maxEmails), defaultLimit);
  withOwner(command).action((options: Options) => list(context, options));
}

async function list(context: CommandContext, options: Options): Promise<void> {
  const { db, out } = context;
  const orgId = options.server ? serverOrgId : (await requireOwner(context, options.org)).id;
  const search = searchOf(orgId, options, context.now());
  const emails: EmailSummary[] = [];
  let next: string | null = null;
  do {
    const page = await searchEmails(await db(), {
      ...search,
      limit: options.limit - emails.length,
      ...(next && { after: next }),
    });
    emails.push(...page.emails);
    next = page.next;
    out.progress(`${emails.length} found so far`);
  } while (next !== null && emails.length < options.limit);
  printEmails(out, emails);
  if (next !== null) out.note(`only the first ${options.limit} are shown; --limit N shows more`);
}

function searchOf(orgId: string, options: Options, now: number): Omit<Search, 'limit'> {
  const { status, to, from, subject, tag, since, until } = options;
  const [name, value] = tag?.split(/=(.*)/s) ?? [];
  return {
    orgId,
    tags: name !== undefined && value !== undefined ? { [name]: value } : {},
    ...(tag !== undefined && value === undefined && { tag }),
    ...(status && { status }),
    ...(to && { to: searchedAddress(to) }),
    ...(from && { from: searchedAddress(from) }),
    ...(subject && { contains: { subject } }),
    ...(since && { since: timeOf(since, now) }),
    ...(until && { until: timeOf(until, now) }),
  };
}

/** The form of the search: a normalized address, or a domain with its @. */
function searchedAddress(text: string): string {
  return text.includes('@') ? compareKey(text) : `@${text}`;
}

function printEmails(out: Output, emails: EmailSummary[]): void {
  out.print(
    emails.map(({ id, messageId, createdAt, updatedAt, ...email }) => ({
      emailId: id,
      id: messageId,
      ...email,
      createdAt: iso(createdAt),
      updatedAt: iso(updatedAt),
    })),
    {
      head: ['EMAIL ID', 'STATUS', 'CREATED', 'RECIPIENTS', 'SUBJECT'],
      rows: emails.map(({ id, status, createdAt, recipients, subject }) => [
        { id },
        { state: status },
        { time: createdAt, past: true },
        recipientsText(recipients),
        subject,
      ]),
      empty: 'No email matches.',
      cut: 'last',
    },
  );
}

function recipientsText([first, ...others]: EmailSummary['recipients']): string {
  const more = others.length > 0 ? ` and ${others.length} more` : '';
  return `${first?.address ?? '-'}${more}`;
}
