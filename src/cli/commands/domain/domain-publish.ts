/** `postern domain publish`: the records of a domain at its DNS provider. */
import type { Command } from 'commander';
import { recordsFor } from '#accounts/domains.ts';
import { addConsent, type Consent } from '#cli/args/consent.ts';
import { type OwnerOption, requireDomain, requireOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import {
  openDnsProvider,
  providerOption,
  publishedBlock,
  publishedDocument,
  publishRecords,
} from '#cli/publish.ts';
import type { ProviderName } from '#operate/publish/providers.ts';

type PublishOptions = OwnerOption & Consent & { provider?: ProviderName };

export function publishCommand(
  named: (command: string, description: string) => Command,
  context: CommandContext,
): void {
  addConsent(
    named(
      'publish',
      'Publish the DNS records of a domain at its DNS provider: show what would change, ask, and write. Records of others are left.',
    ).addOption(
      providerOption('--provider', (names) => `<${names}>`, 'the DNS provider, if the settings have several'),
    ),
  ).action((name: string, options: PublishOptions) => publish(context, name, options));
}

async function publish(
  context: CommandContext,
  name: string,
  { org, provider, ...consent }: PublishOptions,
): Promise<void> {
  const { db, config, out } = context;
  const domain = await requireDomain(await db(), await requireOwner(context, org), name);
  const dns = await openDnsProvider(context, provider ?? null);
  const published = await publishRecords(context, dns, recordsFor(domain, config()), consent);
  if (published) out.print({ name, ...publishedDocument(published) }, publishedBlock(published));
}
