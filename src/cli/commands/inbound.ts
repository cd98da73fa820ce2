/** `postern inbound`: received mail that is kept: bounces, complaints, and mail to postmaster and abuse. */
import type { Command } from 'commander';
import { validate as isUuid } from 'uuid';
import { iso } from '../../base/clock.ts';
import { type InboundRecord, listInbound, readInbound } from '../../db/bounces/inbound-mails.ts';
import { choice, lines } from '../args/arguments.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';
import type { Output } from '../render/output.ts';

const kinds = ['failed', 'complaint', 'letter'] as const;
const defaultLimit = 50;
const maxMails = 10_000;

interface ListOptions {
  kind?: (typeof kinds)[number];
  email?: string;
  limit: number;
}

export function inboundCommands(program: Command, { db, out }: CommandContext): void {
  const inbound = program
    .command('inbound')
    .description('Show received mail: bounces, complaints, and mail to postmaster and abuse.');

  inbound
    .command('list')
    .description('List received mail, newest first.')
    .option('--kind <K>', `one of ${kinds.join(', ')}`, choice('a kind', kinds))
    .option('--email <ID>', 'only mail about the email with this emailId')
    .option('--limit <N>', 'how many at most', lines(1, maxMails), defaultLimit)
    .action(async ({ kind, email, limit }: ListOptions) => {
      if (email !== undefined && !isUuid(email))
        throw new Failure(`"${email}" is not an emailId; give the UUID from the response to the send`);
      printList(out, await listInbound(await db(), { kind, emailId: email?.toLowerCase(), limit }));
    });

  inbound
    .command('source')
    .description('Print the source of a received mail to standard output; of a long one, the beginning.')
    .argument('<ID>', 'id of the mail, from `postern inbound list`')
    .action(async (id: string) => {
      const found = isUuid(id) ? await readInbound(await db(), id.toLowerCase()) : null;
      if (!found) throw new Failure(`there is no mail "${id}"; \`postern inbound list\` shows them all`);
      const { raw, size } = found;
      if (out.json) return out.print({ id, size, encoding: 'base64', source: raw.toString('base64') });
      out.write(raw);
      if (raw.length < size) out.warn(`${raw.length} of ${size} bytes are kept`);
    });
}

function printList(out: Output, mails: InboundRecord[]): void {
  out.print(
    mails.map(({ at, ...mail }) => ({ ...mail, at: iso(at) })),
    {
      head: ['ID', 'KIND', 'CAME', 'FROM', 'TO', 'ABOUT'],
      rows: mails.map((mail) => [
        mail.id,
        mail.kind,
        { time: mail.at },
        mail.sender || '<>',
        mail.emailTo === null ? mail.recipient : 'a return path',
        mail.emailTo === null ? null : `${mail.emailTo}, email ${mail.emailId}`,
      ]),
      empty: 'There is no received mail.',
      cut: 'last',
    },
  );
}
