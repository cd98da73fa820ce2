/** `postern doctor`: checks whether this machine can send mail. Prints findings, advice and DNS records to publish. */
import type { Command } from 'commander';
import { withTimeout } from '../../base/waits.ts';
import { refuseMoved } from '../../db/admin/moved-marker.ts';
import { type Db, openExisting } from '../../db/engine/open.ts';
import { type ExamineProgress, examine } from '../../operate/doctor/examine.ts';
import type { Config } from '../../settings/config.ts';
import { domain as domainArgument } from '../args/arguments.ts';
import type { CommandContext } from '../command-context.ts';
import { doctorBlocks, doctorDocument } from '../render/doctor-view.ts';

export function doctorCommands(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description(
      'Check whether this machine can send mail: ports, names, DNS records, blocklists, disk. Exit with 1 on a failure.',
    )
    .argument('[DOMAIN]', 'check only this sender domain, not all verified ones', domainArgument)
    .action((domain?: string) => run(context, domain ?? null));
}

/** An attempt to connect to a database cannot be canceled; it is waited for so long after the last check. */
const timeoutMs = 1_000;

/** Creates nothing: neither a data directory nor a database. */
async function run(context: CommandContext, domain: string | null): Promise<void> {
  const { out, config, now, process } = context;
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
  out.print(doctorDocument(findings), ...doctorBlocks(findings, out.columns));
  if (findings.some(({ verdict }) => verdict === 'failure')) context.exitCode = 1;
  const closed = opening.then(
    (db) => db?.destroy(),
    () => {},
  );
  await withTimeout(timeoutMs, closed, () => {});
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
