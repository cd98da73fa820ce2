/** `postern returned`: returned mail that is kept: bounces, complaints, and mail to postmaster and abuse. */
import type { Command } from 'commander';
import { choice, lines } from '#cli/args/arguments.ts';
import { emailIs, requireEmailId, requireReturnedId } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import type { Output } from '#cli/render/output.ts';
import { listReturned, type ReturnedRecord, readReturned } from '#mail/returned/rows/returned-mails.ts';
import { iso } from '#platform/base/clock.ts';

const kinds = ['failed', 'complaint', 'letter'] as const;
const defaultLimit = 50;
const maxMails = 10_000;

interface ListOptions {
  kind?: (typeof kinds)[number];
  email?: string;
  limit: number;
}

export function returnedCommands(program: Command, context: CommandContext): void {
  const { db, out } = context;
  const returned = program
    .command('returned')
    .alias('inbound')
    .description('Show returned mail: bounces, complaints, and mail to postmaster and abuse.');

  returned
    .command('list')
    .description('List returned mail, newest first.')
    .option('--kind <K>', `one of ${kinds.join(', ')}`, choice('a kind', kinds))
    .option('--email <ID>', `only mail about this email: ${emailIs}`)
    .option('--limit <N>', 'how many at most', lines(1, maxMails), defaultLimit)
    .action(async ({ kind, email, limit }: ListOptions) => {
      const emailId = email === undefined ? undefined : await requireEmailId(context, email);
      printList(out, await listReturned(await db(), { kind, emailId, limit }));
    });

  returned
    .command('source')
    .description('Print the source of a returned mail to standard output; of a long one, the beginning.')
    .argument('<ID>', 'id of the mail, or its end, from `postern returned list`')
    .action(async (id: string) => {
      const { raw, size } = (await readReturned(await db(), await requireReturnedId(await db(), id)))!;
      if (out.json) return out.print({ id, size, encoding: 'base64', source: raw.toString('base64') });
      out.write(raw);
      if (raw.length < size) out.warn(`${raw.length} of ${size} bytes are kept`);
    });
}

/** Why no report could be read in it. */
const whyOf = ({ reading }: ReturnedRecord) => (typeof reading.why === 'string' ? reading.why : null);

function printList(out: Output, mails: ReturnedRecord[]): void {
  out.print(
    mails.map(({ at, ...mail }) => ({ ...mail, at: iso(at) })),
    {
      head: ['ID', 'KIND', 'CAME', 'FROM', 'TO', 'ABOUT'],
      rows: mails.map((mail) => [
        { id: mail.id },
        mail.kind,
        { time: mail.at },
        mail.sender || '<>',
        mail.emailTo === null ? mail.recipient : 'a return path',
        mail.emailTo === null ? whyOf(mail) : `${mail.emailTo}, email ${mail.emailId}`,
      ]),
      empty: 'There is no returned mail.',
      cut: 'last',
    },
  );
}
