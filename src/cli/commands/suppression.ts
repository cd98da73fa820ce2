/** `postern suppression`: addresses that an organization sends no mail to. */
import type { Command } from 'commander';
import { importAddresses, suppressAddress, unsuppressAddress } from '../../accounts/suppression-list.ts';
import { iso } from '../../base/clock.ts';
import { listSuppressions } from '../../db/accounts/suppressions.ts';
import { readAddressFile } from '../args/address-list.ts';
import { address as addressArgument } from '../args/arguments.ts';
import { quoted, requireOrganization } from '../args/lookup.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';

interface Owner {
  org: string;
}

export function suppressionCommands(program: Command, context: CommandContext): void {
  const suppression = program
    .command('suppression')
    .description('Manage the suppression list: addresses that no mail is sent to.');
  const ofOrg = (command: string, description: string) =>
    suppression
      .command(command)
      .description(description)
      .requiredOption('--org <ORG>', 'id or name of the organization');

  ofOrg('add', 'Add an address to the suppression list.')
    .argument('<ADDRESS>', 'the address', addressArgument)
    .action((address: string, { org }: Owner) => add(context, org, address));

  ofOrg('remove', 'Remove an address from the suppression list, so that mail is sent to it again.')
    .argument('<ADDRESS>', 'the address', addressArgument)
    .action((address: string, { org }: Owner) => remove(context, org, address));

  ofOrg('list', 'List the suppressed addresses.').action(({ org }: Owner) => list(context, org));

  ofOrg('import', 'Add all addresses of a file: one per line, or the first column of a CSV file.')
    .argument('<FILE>', 'the file; - is standard input')
    .action((file: string, { org }: Owner) => importFile(context, org, file));
}

async function add({ db, out, now }: CommandContext, org: string, address: string): Promise<void> {
  const owner = await requireOrganization(await db(), org);
  const added = await suppressAddress({ db: await db(), orgId: owner.id, now: now() }, address);
  out.print({ address, added }, { fields: { address, added: added ? 'yes' : 'no' } });
  if (!added) out.note(`${address} was already on the suppression list of ${owner.name}`);
}

async function remove({ db, out, now }: CommandContext, org: string, address: string): Promise<void> {
  const owner = await requireOrganization(await db(), org);
  if (!(await unsuppressAddress({ db: await db(), orgId: owner.id, now: now() }, address))) {
    throw new Failure(
      `${address} is not on the suppression list of ${owner.name}; \`postern suppression list --org ${quoted(owner.name)}\` prints the list`,
    );
  }
  out.print({ address, removed: true }, { fields: { removed: address } });
}

async function list({ db, out }: CommandContext, org: string): Promise<void> {
  const owner = await requireOrganization(await db(), org);
  const entries = await listSuppressions(await db(), owner.id);
  out.print(
    entries.map(({ address, reason, createdAt }) => ({ address, reason, createdAt: iso(createdAt) })),
    {
      head: ['ADDRESS', 'SINCE', 'REASON'],
      rows: entries.map(({ address, reason, createdAt }) => [address, { time: createdAt }, reason]),
      empty: 'The suppression list is empty.',
    },
  );
}

async function importFile(
  { db, out, now, process }: CommandContext,
  org: string,
  file: string,
): Promise<void> {
  const owner = await requireOrganization(await db(), org);
  const addresses = await readAddressFile(file, process.stdin);
  const imported = await importAddresses({ db: await db(), orgId: owner.id, now: now() }, addresses);
  out.print(imported, { fields: imported });
}
