/** `postern doctor`: can this machine send? What was found, what to do, and the records to publish. */
import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import { refuseMoved } from '../../db/admin/moved-marker.ts';
import { type Db, openExisting } from '../../db/engine/open.ts';
import { type ExamineProgress, examine } from '../../operate/doctor/examine.ts';
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

/** A connection to a database that is being made cannot be called off. */
const timeoutMs = 1_000;

/** Opens what is there, and makes nothing: a look at a machine is no start of a service. */
async function run({ out, config, now }: CommandContext, domain: string | null): Promise<void> {
  const opening = openTheOne(config());
  opening.catch(() => {});
  const findings = await examine({
    ...{ config: config(), domain, now },
    openDb: () => opening,
    onProgress: (progress) => out.progress(lineOf(progress)),
  });
  out.progress('');
  out.print(doctorDocument(findings), ...doctorBlocks(findings, process.stdout.columns));
  if (findings.some(({ verdict }) => verdict === 'failure')) process.exitCode = 1;
  setTimeout(() => process.exit(), timeoutMs).unref();
  await opening.then(
    (db) => db?.destroy(),
    () => {},
  );
}

async function openTheOne(config: Config): Promise<Db | null> {
  const db = await openExisting(config);
  try {
    if (db) await refuseMoved(db, config.dataDir);
    return db;
  } catch (error) {
    await db?.destroy();
    throw error;
  }
}

function lineOf({ done, known, waitingFor }: ExamineProgress): string {
  const [first] = waitingFor;
  return first === undefined ? '' : `${done} of ${known} checks done, waiting for ${first}`;
}
