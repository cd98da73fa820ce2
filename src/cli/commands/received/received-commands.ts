/** `postern received`: mail that came in for organizations' domains, and what becomes of mail for an address. */
import type { Command } from 'commander';
import { lines, type Moment, moment, parser, timeOf } from '#cli/args/arguments.ts';
import { type OwnerOption, requireOwner, requireReceived, withOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { receivedDocument, receivedFields, receivedRows } from '#cli/render/received-view.ts';
import { readFile } from '#mail/received/read-mail.ts';
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { rawOf } from '#mail/received/rows/received-mails.ts';
import { searchReceived } from '#mail/received/rows/search-received.ts';
import { wholeNumber } from '#platform/settings/grammar.ts';
import { whyCommand } from './received-why.ts';

const defaultLimit = 50;
const maxMails = 1000;
const position = parser(wholeNumber('a position', 0, 100_000).read);

interface ListOptions extends OwnerOption {
  to?: string;
  from?: string;
  subject?: string;
  since?: Moment;
  limit: number;
}

export function receivedCommands(program: Command, context: CommandContext): void {
  const received = program
    .command('received')
    .description('Show mail that came in for domains that receive, while it is kept.');

  withOwner(received.command('list'))
    .description('List received mail of an organization, newest first.')
    .option('--to <TEXT>', 'part of a recipient')
    .option('--from <TEXT>', 'part of the sender')
    .option('--subject <TEXT>', 'part of the subject')
    .option('--since <TIME>', 'a time, or how long ago', moment)
    .option('--limit <N>', 'how many at most', lines(1, maxMails), defaultLimit)
    .action((options: ListOptions) => list(context, options));

  const ofOne = (command: string, description: string) =>
    received.command(command).description(description).argument('<ID>', 'id of the mail, or its end');

  ofOne('show', 'Show a received mail: its envelope, its verdicts and its attachments.').action(
    async (id: string) => {
      const mail = await requireReceived(await context.db(), id);
      context.out.print(receivedDocument(mail), { fields: receivedFields(mail) });
    },
  );

  ofOne('raw', 'Print a received mail to standard output, as it came after the fields that we added.').action(
    async (id: string) => {
      const { mail, raw } = await readRaw(context, id);
      print(context, { id: mail.id, size: mail.size }, { raw });
    },
  );

  ofOne('attachment', 'Print an attachment of a received mail to standard output, decoded.')
    .argument('<POSITION>', 'its number, from 0; `received show` has them', position)
    .action(async (id: string, at: number) => {
      const { mail, raw } = await readRaw(context, id);
      const file = mail.summary.attachments[at];
      const content = file ? readFile(raw, at) : null;
      if (!file || !content)
        throw new Failure(
          `this mail has no attachment ${at}; \`postern received show ${mail.id}\` lists them`,
        );
      print(context, { id: mail.id, ...file }, { content });
    });

  whyCommand(received, context);
}

async function list(context: CommandContext, { org, since, limit, ...words }: ListOptions): Promise<void> {
  const db = await context.db();
  const { id: orgId } = await requireOwner(context, org);
  const found: ReceivedMail[] = [];
  // One search reads a bounded number of mails.
  for (let after: string | null | undefined; after !== null && found.length < limit; ) {
    const { mails, next } = await searchReceived(db, {
      ...words,
      orgId,
      since: since && timeOf(since, context.now()),
      after,
      limit: limit - found.length,
    });
    found.push(...mails);
    after = next;
  }
  context.out.print(found.map(receivedDocument), receivedRows(found));
}

async function readRaw(
  context: CommandContext,
  idOrEnd: string,
): Promise<{ mail: ReceivedMail; raw: Buffer }> {
  const db = await context.db();
  const mail = await requireReceived(db, idOrEnd);
  return { mail, raw: (await rawOf(db, mail.orgId, mail.id)) ?? Buffer.alloc(0) };
}

/** The bytes, or with --json the document, in which they are a member. */
function print({ out }: CommandContext, document: object, named: Record<string, Buffer>): void {
  const [[name, bytes]] = Object.entries(named) as [[string, Buffer]];
  if (out.json) out.print({ ...document, encoding: 'base64', [name]: bytes.toString('base64') });
  else out.write(bytes);
}
