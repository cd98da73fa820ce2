/** `postern domain publish`: the records of a domain at its DNS provider. */
import type { Command } from 'commander';
import { type DnsRecord, recordsFor } from '#accounts/domains.ts';
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
  // Any host can be a tracking host: one that is not in the domain may be in a zone of somebody else's that is managed here too.
  const isInDomain = ({ purpose, name: at }: DnsRecord) =>
    purpose !== 'tracking' || at.endsWith(`.${domain.name}`);
  const { ours = [], others = [] } = Object.groupBy(recordsFor(domain, config()), (record) =>
    isInDomain(record) ? 'ours' : 'others',
  );
  for (const { type, name: at, value } of others)
    out.warn(
      `${at} is not in ${domain.name}, so its record is not published; its owner adds: ${type} ${value}`,
    );
  const published = await publishRecords(context, dns, ours, consent);
  if (published) out.print({ name, ...publishedDocument(published) }, publishedBlock(published));
}
