/** `postern queue suspend` and `resume`: pauses delivery to a destination. Sessions that have begun are completed. */
import type { Command } from 'commander';
import { destination, reason, spanOption } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { removeRules, suspensionOrder } from '#mail/queue/rows/destination-rules.ts';
import { resume, suspend } from '#mail/queue/rows/suspensions.ts';
import { isKnownDestination } from '#mail/record/rows/destination-status-rows.ts';
import { destinationNamed, documentOf } from './queue-rules.ts';

const destinationIs = 'a recipient domain, or a destination as named by `postern queue summary`';

export function suspensionCommands(queue: Command, context: CommandContext): void {
  queue
    .command('suspend')
    .description('Suspend delivery to a destination for one hour, or as long as --for says.')
    .argument('<DESTINATION>', destinationIs, destination)
    .addOption(spanOption('--for <TIME>', 'how long; then delivery resumes automatically', '1h'))
    .requiredOption('--reason <R>', 'why', reason)
    .action((name: string, options: SuspendOptions) => suspendMail(context, name, options));

  queue
    .command('resume')
    .description('Resume delivery to a destination that is suspended or slowed.')
    .argument('<DESTINATION>', destinationIs, destination)
    .requiredOption('--reason <R>', 'why', reason)
    .action((name: string, options: { reason: string }) => resumeMail(context, name, options.reason));
}

interface SuspendOptions {
  for: number;
  reason: string;
}

async function suspendMail(
  { db, out, now }: CommandContext,
  name: string,
  options: SuspendOptions,
): Promise<void> {
  const createdAt = now();
  const suspension = { destination: name, reason: options.reason, createdAt, until: createdAt + options.for };
  await suspend(await db(), suspension);
  out.print(documentOf(suspensionOrder(suspension)), {
    fields: { suspended: name, until: { time: suspension.until }, reason: options.reason },
  });
  if (!(await isKnownDestination(await db(), name)))
    out.note(`no mail has gone to ${name} yet; \`postern queue summary\` shows the names of destinations`);
}

async function resumeMail(context: CommandContext, name: string, why: string): Promise<void> {
  const { db, out, now } = context;
  const suspension = await resume(await db(), name, now());
  // A limit is of the destination that serves the domain.
  const served = await destinationNamed(context, name);
  const [limit] = await removeRules(await db(), served, ['slow'], now());
  if (!suspension && !limit)
    throw new Failure(`${name} is neither suspended nor slowed; \`postern queue rules\` lists what is`);
  const document = {
    resumed: name,
    reason: why,
    suspension: suspension && documentOf(suspensionOrder(suspension)),
    limit: limit ? documentOf(limit) : null,
  };
  out.print(document, { fields: { resumed: name } });
}
