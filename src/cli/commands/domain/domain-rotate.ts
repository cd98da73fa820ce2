/**
 * `postern domain rotate` and `domain ed25519`: a new DKIM key with its own selector. It signs as soon as its record is found,
 * by `domain verify` or by a regular check of the server.
 */
import type { Command } from 'commander';
import { addKeys, algorithmsOf, endEd25519 } from '#accounts/dkim-rotation.ts';
import { recordsFor } from '#accounts/domains.ts';
import { type DkimAlgorithm, dropPendingKeys } from '#accounts/rows/dkim-keys.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { createSeal } from '#accounts/seal.ts';
import { onOff } from '#cli/args/arguments.ts';
import { type OwnerOption, orgOption, requireDomain, requireOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { domainDocument, recordsBlock } from '#cli/render/domain-view.ts';

export function rotationCommands(
  named: (command: string, description: string) => Command,
  context: CommandContext,
): void {
  const { db, now, config } = context;
  const lookUp = async (org: string | undefined, name: string) =>
    requireDomain(await db(), await requireOwner(context, org), name);

  named('rotate', 'Create a new DKIM key; mail is signed with it as soon as its DNS record is found.')
    .option('--cancel', 'delete the new key while its DNS record has not been found yet')
    .action(async (name: string, { org, cancel }: OwnerOption & { cancel?: true }) => {
      const domain = await lookUp(org, name);
      if (cancel) {
        const dropped = await dropPendingKeys(await db(), domain.id);
        if (dropped === 0) throw new Failure(`${name} has no pending DKIM key`);
      } else {
        await add(context, domain, algorithmsOf(domain), org);
      }
      print(context, await lookUp(org, name));
    });

  named('ed25519', 'Turn a second DKIM signature with Ed25519 (RFC 8463) on or off.')
    .argument('<on|off>', 'on: create a key, which signs as soon as its DNS record is found', onOff)
    .action(async (name: string, state: 'on' | 'off', { org }: OwnerOption) => {
      const domain = await lookUp(org, name);
      if (state === 'on') {
        if (algorithmsOf(domain).includes('ed25519')) throw new Failure(`${name} already has an Ed25519 key`);
        await add(context, domain, ['ed25519'], org);
      } else if (!(await endEd25519(await db(), domain, { now: now(), keepMs: config().mtaMaxAge }))) {
        throw new Failure(`${name} has no Ed25519 key`);
      }
      print(context, await lookUp(org, name));
    });
}

async function add(
  { db, out, secrets, now }: CommandContext,
  domain: DomainRecord,
  algorithms: DkimAlgorithm[],
  org: string | undefined,
): Promise<void> {
  const terms = { seal: createSeal(secrets()), now: now() };
  const show = `\`postern domain show ${domain.name}${orgOption(org)}\``;
  if ((await addKeys(await db(), domain, algorithms, terms)) === 0) {
    throw new Failure(`${domain.name} already has a pending key; ${show} prints its DNS record`);
  }
  out.note(
    'publish the new record and keep the old one: mail is signed with the new key when a server finds the record, ' +
      'within minutes, or at once after `postern domain verify`',
  );
}

function print({ out, config }: CommandContext, domain: DomainRecord): void {
  const records = recordsFor(domain, config()).filter(({ purpose }) => purpose === 'dkim');
  const { name, keys } = domainDocument(domain);
  out.print({ name, keys, records }, recordsBlock(records));
}
