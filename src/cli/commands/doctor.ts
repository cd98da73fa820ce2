/** `postern doctor`: checks whether this server can send mail. Prints findings, advice and DNS records to publish. */
import type { Command } from 'commander';
import type { ZoneRecord } from '#accounts/zone-text.ts';
import { domain as domainArgument } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import {
  openDnsProvider,
  providerOption,
  publishedBlock,
  publishedDocument,
  publishRecords,
} from '#cli/publish.ts';
import { doctorBlocks, doctorDocument } from '#cli/render/doctor-view.ts';
import { type ExamineProgress, examine } from '#operate/doctor/examine.ts';
import type { Finding } from '#operate/doctor/finding.ts';
import type { ProviderName } from '#operate/publish/providers.ts';
import { withTimeout } from '#platform/base/waits.ts';
import { refuseMoved } from '#platform/database/admin/moved-marker.ts';
import { type Db, openExisting } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';

export function doctorCommands(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description(
      'Check whether this server can send mail: ports, names, DNS records, blocklists, disk. Exit with 1 on a failure.',
    )
    .argument('[DOMAIN]', 'check only this sender domain, not all verified ones', domainArgument)
    .addOption(
      providerOption(
        '--fix',
        (names) => `[${names}]`,
        'publish the missing DNS records at this DNS provider, as domain publish does',
      ),
    )
    .option('--yes', 'do not ask before publishing')
    .action((domain: string | undefined, options: FixOptions) => run(context, domain ?? null, options));
}

/** An attempt to connect to a database cannot be canceled; it is waited for so long after the last check. */
const timeoutMs = 1_000;

/** Creates nothing: neither a data directory nor a database. */
async function run(
  context: CommandContext,
  domain: string | null,
  { fix, yes = false }: FixOptions,
): Promise<void> {
  const { out, config, now, process } = context;
  const dns = fix && (await openDnsProvider(context, fix === true ? null : fix));
  const opening = openUnmoved(config());
  opening.catch(() => {});
  const findings = await examine({
    config: config(),
    domain,
    now,
    openDb: () => opening,
    surroundings: { env: process.env },
    onProgress: (progress) => out.progress(progressLine(progress)),
  });
  const closed = opening.then(
    (db) => db?.destroy(),
    () => {},
  );
  await withTimeout(timeoutMs, closed, () => {});
  if (findings.some(({ verdict }) => verdict === 'failure')) context.exitCode = 1;
  const blocks = doctorBlocks(findings, out.columns);
  if (!dns) out.print(doctorDocument(findings), ...blocks);
  else {
    // With --json there is one document, so the findings wait for what is published.
    if (!out.json) out.print(null, ...blocks);
    const published = await publishRecords(context, dns, missing(findings), { yes });
    const document = { ...doctorDocument(findings), ...publishedDocument(published ?? []) };
    out.print(document, publishedBlock(published ?? []));
  }
}

interface FixOptions {
  fix?: ProviderName | true;
  yes?: boolean;
}

/** The records that the findings advise, each once. */
function missing(findings: Finding[]): ZoneRecord[] {
  const records = findings.flatMap((finding) => finding.records);
  return [...new Map(records.map((record) => [JSON.stringify(record), record])).values()];
}

/** Refuses a database that was moved to PostgreSQL. */
async function openUnmoved(config: Config): Promise<Db | null> {
  refuseMoved(config);
  return openExisting(config);
}

function progressLine({ done, known, waitingFor }: ExamineProgress): string {
  const [first] = waitingFor;
  return first === undefined ? '' : `${done} of ${known} checks done, waiting for ${first}`;
}
