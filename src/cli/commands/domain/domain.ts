/** `postern domain`: sender domains, the DNS records to publish for them, and the check of the published records. */

import type { Command } from 'commander';
import { switchReceiving } from '#accounts/domain-receiving.ts';
import { registerDomain } from '#accounts/domain-registration.ts';
import { changeTracking } from '#accounts/domain-tracking.ts';
import { recordsFor } from '#accounts/domains.ts';
import { type DomainRecord, deleteDomain, listDomains, setDomainTls } from '#accounts/rows/domains-table.ts';
import { createSeal } from '#accounts/seal.ts';
import { zoneText } from '#accounts/zone-text.ts';
import {
  domain as domainArgument,
  hostOrNone,
  onOff,
  tlsArgument,
  tlsFloor,
  tlsIs,
} from '#cli/args/arguments.ts';
import { addConsent, type Consent, canAsk, isWanted } from '#cli/args/consent.ts';
import { type OwnerOption, orgOption, requireDomain, requireOwner, withOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { asFailure, Failure } from '#cli/failure.ts';
import {
  openDnsProvider,
  providerOption,
  publishedBlock,
  publishedDocument,
  publishRecords,
} from '#cli/publish.ts';
import { domainBlocks, domainDocument, printDomains, tlsDocument, tlsText } from '#cli/render/domain-view.ts';
import type { ProviderName } from '#operate/publish/providers.ts';
import { hostnameAdvice } from '#platform/settings/hostname-advice.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import type { TlsFloor } from '#platform/values/glossary.ts';
import { publishCommand } from './domain-publish.ts';
import { reportsCommand } from './domain-reports.ts';
import { rotationCommands } from './domain-rotate.ts';
import { verifyCommand } from './domain-verify.ts';

export function domainCommands(program: Command, context: CommandContext): void {
  const { db, out } = context;
  const domain = program.command('domain').description('Manage sender domains and their DNS records.');
  const named = (command: string, description: string) =>
    withOwner(
      domain.command(command).description(description).argument('<NAME>', 'the domain', domainArgument),
    );

  named('add', 'Register a domain and print its DNS records.')
    .addOption(
      providerOption(
        '--publish',
        (names) => `<${names}>`,
        'publish the records at this DNS provider too, as domain publish does',
      ),
    )
    .option('--yes', 'do not ask before publishing')
    .option('--receive', 'receive mail for the domain too, as domain receive does')
    .action((name: string, options: AddOptions) => add(context, name, options));

  withOwner(domain.command('list').description('List the domains of an organization.')).action(
    async ({ org }: OwnerOption) => {
      const owner = await requireOwner(context, org);
      printDomains(out, await listDomains(await db(), owner.id));
    },
  );

  named('show', 'Show a domain and its DNS records.')
    .option('--zone', 'print only the records, as text for a zone file')
    .action((name: string, options: OwnerOption & { zone?: true }) => show(context, name, options));

  addConsent(
    named('remove', 'Delete a domain and its DKIM keys; mail can no longer be sent from it.'),
  ).action((name: string, { org, ...consent }: OwnerOption & Consent) => remove(context, org, name, consent));

  named('tracking', 'Turn open and click tracking on or off for mail from a domain.')
    .option('--opens <on|off>', 'track opens', onOff)
    .option('--clicks <on|off>', 'track clicks', onOff)
    .option(
      '--host <HOST|none>',
      'host name in tracking links; it needs a CNAME record that leads to this server',
      hostOrNone,
    )
    .action((name: string, options: TrackingOptions) => setTracking(context, name, options));

  named('tls', 'Set the minimum TLS protection for mail from a domain.')
    .argument(tlsArgument, tlsIs, tlsFloor)
    .action((name: string, tls: TlsFloor, { org }: OwnerOption) => setTls(context, org, name, tls));

  named('receive', 'Turn the receiving of mail for a domain on or off; routes say what becomes of it.')
    .argument('<on|off>', 'on: from its verification on', onOff)
    .action((name: string, receives: 'on' | 'off', { org }: OwnerOption) =>
      setReceives(context, org, name, receives === 'on'),
    );

  publishCommand(named, context);
  verifyCommand(named, context);
  rotationCommands(named, context);
  reportsCommand(domain, context);
}

async function lookUp(context: CommandContext, org: string | undefined, name: string): Promise<DomainRecord> {
  return requireDomain(await context.db(), await requireOwner(context, org), name);
}

async function show(
  context: CommandContext,
  name: string,
  { org, zone }: OwnerOption & { zone?: true },
): Promise<void> {
  const { config, out } = context;
  const found = await lookUp(context, org, name);
  const records = recordsFor(found, config());
  if (zone && !out.json) out.write(zoneText(records));
  else if (zone) out.print({ zone: zoneText(records) });
  else out.print({ ...domainDocument(found), records }, ...domainBlocks(found, records));
}

interface AddOptions extends OwnerOption {
  publish?: ProviderName;
  yes?: boolean;
  receive?: true;
}

async function add(
  context: CommandContext,
  name: string,
  { org, publish: provider, yes = false, receive }: AddOptions,
): Promise<void> {
  const { db, out, config } = context;
  // Everything that can be refused comes before the domain is registered.
  const dns = provider && (await openDnsProvider(context, provider));
  if (dns && !yes && !canAsk(context.process))
    throw new Failure(`publish the records of ${name}? Nothing was changed; add --yes if it is meant`);
  const owner = await requireOwner(context, org);
  const terms = { seal: createSeal(context.secrets()), now: context.now() };
  const added = await registerDomain(await db(), { orgId: owner.id, name }, terms);
  if (receive) await switchReceiving(await db(), added, true, config());
  const shown = { ...added, receives: receive ?? false };
  const records = recordsFor(shown, config());
  const { id, status } = added;
  const published = dns ? await publishRecords(context, dns, records, { yes }) : null;
  const document = {
    id,
    name,
    status,
    receives: shown.receives,
    records,
    ...(published && publishedDocument(published)),
  };
  out.print(document, ...domainBlocks(shown, records), ...(published ? [publishedBlock(published)] : []));
  const advice = hostnameAdvice(config());
  if (advice) out.warn(`${advice} before you publish these records`);
  const named = `${name} --org ${shellWord(owner.name)}`;
  const manual = `publish these records (\`postern domain show ${named} --zone\` prints them for a zone file); then `;
  out.note(`${published ? '' : manual}\`postern domain verify ${named} --wait\` checks them`);
}

async function remove(context: CommandContext, org: string | undefined, name: string, consent: Consent) {
  const { db, out } = context;
  const found = await lookUp(context, org, name);
  const { id } = found;
  const effect = {
    question: `delete ${name} and its DKIM keys, so that no mail can be sent from it`,
    fields: { domain: name },
    document: { id, name },
  };
  if (!(await isWanted(context, effect, consent))) return;
  await deleteDomain(await db(), found);
  out.print({ id, name, removed: true }, { fields: { removed: name } });
}

async function setReceives(
  context: CommandContext,
  org: string | undefined,
  name: string,
  receives: boolean,
): Promise<void> {
  const { db, out, config } = context;
  const found = await lookUp(context, org, name);
  await switchReceiving(await db(), found, receives, config());
  const record = recordsFor({ ...found, receives }, config()).find(({ purpose }) => purpose === 'receiving');
  out.print(
    { name, receives, record: record ?? null },
    { fields: { name, receives: receives ? 'on' : 'off' } },
  );
  if (!record) return;
  const named = `${name}${orgOption(org)}`;
  out.note(`publish MX ${name} ${record.value}, by hand or with \`postern domain publish ${named}\``);
  out.note(
    `\`postern route add '*@${name}' --action store${orgOption(org)}\` takes its mail; without a route, it is refused`,
  );
}

async function setTls(
  context: CommandContext,
  org: string | undefined,
  name: string,
  tls: TlsFloor,
): Promise<void> {
  const { db, out } = context;
  const found = await lookUp(context, org, name);
  await setDomainTls(await db(), found.id, tls);
  const changed = { ...found, tls };
  out.print({ name, ...tlsDocument(changed) }, { fields: { name, TLS: tlsText(changed) } });
}

interface TrackingOptions extends OwnerOption {
  opens?: 'on' | 'off';
  clicks?: 'on' | 'off';
  host?: string;
}

async function setTracking(
  context: CommandContext,
  name: string,
  { org, opens, clicks, host }: TrackingOptions,
): Promise<void> {
  const { db, out } = context;
  const found = await lookUp(context, org, name);
  const change = {
    opens: opens && opens === 'on',
    clicks: clicks && clicks === 'on',
    host: host === 'none' ? null : host,
  };
  if (opens ?? clicks ?? host) await changeTracking(await db(), found, change).catch(asFailure);
  const tracking = {
    opens: change.opens ?? found.openTracking,
    clicks: change.clicks ?? found.clickTracking,
    host: change.host === undefined ? found.trackingHost : change.host,
  };
  const fields = {
    name,
    opens: tracking.opens ? 'on' : 'off',
    clicks: tracking.clicks ? 'on' : 'off',
    'links at': tracking.host ?? 'the address of the service',
  };
  out.print({ name, tracking }, { fields });
  if (change.host)
    out.note(`publish its CNAME record; \`postern domain show ${name}${orgOption(org)}\` has it`);
}
