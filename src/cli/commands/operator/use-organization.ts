/** `postern use`: chooses the organization of the commands that act for one. */
import type { Command } from 'commander';
import { findOrganization } from '#accounts/rows/organizations.ts';
import { chooseOrganization, chosenOrganization } from '#cli/args/chosen-organization.ts';
import { requireOrganization } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';

export function useCommand(program: Command, { db, out, config }: CommandContext): void {
  program
    .command('use')
    .description(
      'Choose the organization of later commands, or show which is chosen; --org and POSTERN_ORG come first.',
    )
    .argument('[ORG]', 'id or name of the organization')
    .option('--none', 'choose none again')
    .action(async (org: string | undefined, { none = false }: { none?: boolean }) => {
      const { dataDir } = config();
      const wanted = org === undefined ? null : (await requireOrganization(await db(), org)).id;
      if (none || wanted !== null) chooseOrganization(dataDir, none ? null : wanted);
      const id = chosenOrganization(dataDir);
      const chosen = id === null ? null : await findOrganization(await db(), id);
      out.print(
        { organization: chosen && { id: chosen.id, name: chosen.name } },
        { fields: { organization: chosen?.name ?? 'none is chosen' } },
      );
    });
}
