/** `postern suppression`: addresses that an organization sends no mail to. */

import type { Command } from 'commander';
import { requireStreamName } from '#accounts/manage-streams.ts';
import type { Organization } from '#accounts/rows/organizations.ts';
import { causeOf, findSuppression, listSuppressions, ofAll } from '#accounts/rows/suppressions.ts';
import { csvPages, ListError, linesText, readAddresses } from '#accounts/suppression-csv.ts';
import { importAddresses, suppressAddress, unsuppressAddress } from '#accounts/suppression-list.ts';
import { address as addressArgument } from '#cli/args/arguments.ts';
import { readGiven } from '#cli/args/given-file.ts';
import { type OwnerOption, requireOwner, withOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { streamName } from '#cli/commands/stream/stream-commands.ts';
import { asFailure, Failure } from '#cli/failure.ts';
import { iso } from '#platform/base/clock.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import { compareKey } from '#platform/values/address.ts';

export function suppressionCommands(program: Command, context: CommandContext): void {
  const suppression = program
    .command('suppression')
    .description('Manage the suppression list: addresses that no mail is sent to.');
  const ofOrg = (command: string, description: string) =>
    withOwner(suppression.command(command).description(description)).option(
      '--stream <NAME>',
      'the list of this stream, which stops only its mail',
      streamName,
    );

  ofOrg('add', 'Add an address to the suppression list.')
    .argument('<ADDRESS>', 'the address', addressArgument)
    .action((address: string, options: ListOption) => add(context, options, address));

  ofOrg('remove', 'Remove an address from the suppression list, so that mail is sent to it again.')
    .argument('<ADDRESS>', 'the address', addressArgument)
    .action((address: string, options: ListOption) => remove(context, options, address));

  ofOrg('list', 'List the suppressed addresses.').action((options: ListOption) => list(context, options));

  ofOrg('show', 'Show whether an address is suppressed: since when, why, and by which email.')
    .argument('<ADDRESS>', 'the address', addressArgument)
    .action((address: string, options: ListOption) => show(context, options, address));

  ofOrg('export', 'Print the list as CSV, as `suppression import` reads it.').action((options: ListOption) =>
    exportList(context, options),
  );

  ofOrg('import', 'Add all addresses of a file: one per line, or the first column of a CSV file.')
    .argument('<FILE>', 'the file; - is standard input')
    .action((file: string, options: ListOption) => importFile(context, options, file));
}

interface ListOption extends OwnerOption {
  stream?: string;
}

/** The organization, and the list that the options name. */
async function listOf(context: CommandContext, { org, stream }: ListOption) {
  const owner = await requireOwner(context, org);
  return {
    owner,
    stream: (await requireStreamName(await context.db(), owner.id, stream).catch(asFailure)) ?? ofAll,
  };
}

async function add(context: CommandContext, options: ListOption, address: string): Promise<void> {
  const { db, out, now } = context;
  const { owner, stream } = await listOf(context, options);
  const added = await suppressAddress({ db: await db(), orgId: owner.id, now: now(), stream }, address);
  out.print({ address, added }, { fields: { address, added: added ? 'yes' : 'no' } });
  if (!added) out.note(`${address} was already on the suppression list of ${owner.name}`);
}

async function remove(context: CommandContext, options: ListOption, address: string): Promise<void> {
  const { db, out, now } = context;
  const { owner, stream } = await listOf(context, options);
  if (!(await unsuppressAddress({ db: await db(), orgId: owner.id, now: now(), stream }, address)))
    throw notSuppressed(address, owner);
  out.print({ address, removed: true }, { fields: { removed: address } });
}

function notSuppressed(address: string, { name }: Organization): Failure {
  return new Failure(
    `${address} is not on the suppression list of ${name}; \`postern suppression list --org ${shellWord(name)}\` prints the list`,
  );
}

async function show(context: CommandContext, options: ListOption, address: string): Promise<void> {
  const { db, out } = context;
  const { owner, stream } = await listOf(context, options);
  const found = await findSuppression(await db(), owner.id, compareKey(address), stream);
  if (!found) throw notSuppressed(address, owner);
  const emailId = await causeOf(await db(), owner.id, found);
  const { address: listed, reason, createdAt } = found;
  out.print(
    { address: listed, reason, createdAt: iso(createdAt), emailId },
    {
      fields: {
        address: listed,
        reason,
        since: { time: createdAt, past: true },
        ...(emailId && { email: emailId }),
      },
    },
  );
}

async function exportList(context: CommandContext, options: ListOption): Promise<void> {
  if (context.out.json) return list(context, options);
  const { owner, stream } = await listOf(context, options);
  for await (const page of csvPages(await context.db(), owner.id, stream)) context.out.write(page);
}

async function list(context: CommandContext, options: ListOption): Promise<void> {
  const { db, out } = context;
  const { owner, stream } = await listOf(context, options);
  const entries = await listSuppressions(await db(), owner.id, stream);
  out.print(
    entries.map(({ address, reason, createdAt }) => ({ address, reason, createdAt: iso(createdAt) })),
    {
      head: ['ADDRESS', 'SINCE', 'REASON'],
      rows: entries.map(({ address, reason, createdAt }) => [
        address,
        { time: createdAt, past: true },
        reason,
      ]),
      empty: 'The suppression list is empty.',
    },
  );
}

async function importFile(context: CommandContext, options: ListOption, file: string): Promise<void> {
  const { db, out, now, process } = context;
  const { owner, stream } = await listOf(context, options);
  const bytes = await readGiven(file, process.stdin);
  const { addresses, rejected, rejectedLines } = await readAddresses(bytes).catch((error) => {
    if (!(error instanceof ListError)) throw error;
    throw new Failure(`${file}: ${error.message}; nothing was imported; correct the file and try again`);
  });
  const imported = await importAddresses({ db: await db(), orgId: owner.id, now: now(), stream }, addresses);
  out.print({ ...imported, rejected, rejectedLines }, { fields: { ...imported, rejected } });
  if (rejected > 0)
    out.warn(`no email address in ${linesText({ rejected, rejectedLines })}; the others were imported`);
}
