/** `postern pause`: mail that the rules hold or warn of, with the evidence. */
import type { Command } from 'commander';
import { organizationId, requirePause } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { countHeld, type HeldCount } from '#mail/queue/rows/held-of-group.ts';
import { pauseRules } from '#mail/record/auto-pause/pause-rules.ts';
import {
  type AutoPause,
  listPauses,
  pauseDocument,
  pauseTitle,
  releasePause,
} from '#mail/record/auto-pause/rows/auto-pauses.ts';
import { sweepPauses } from '#mail/record/auto-pause/sweep-pauses.ts';

export function pauseCommands(program: Command, context: CommandContext): void {
  const pause = program
    .command('pause')
    .description('Show and release mail that is held because of complaints, bounces or replies.');
  const one = (command: string, description: string) =>
    pause.command(command).description(description).argument('<ID>', 'id, or its end');

  pause
    .command('list')
    .description('List what is held or warned of, the newest first.')
    .option('--org <ORG>', 'only of this organization, by id or name')
    .action(({ org }: { org?: string }) => list(context, org));

  one('show', 'Show why, and how much mail is held.').action((id: string) => show(context, id));

  one(
    'release',
    'Send the mail again, or put a warning aside; what has counted until now is forgiven.',
  ).action((id: string) => release(context, id));
}

const maxListed = 1000;

async function list({ db, out }: CommandContext, org: string | undefined): Promise<void> {
  const pauses = await listPauses(await db(), maxListed, await organizationId(await db(), org));
  out.print(pauses.map(pauseDocument), {
    head: ['ID', 'STATE', 'SINCE', 'ORGANIZATION', 'MAIL', 'RULE', 'COUNT', 'OF'],
    rows: pauses.map((pause) => [
      pause.id,
      pause.state,
      { time: pause.since, past: true },
      pause.orgName,
      pauseTitle(pause),
      pauseRules[pause.rule].label,
      pause.figures.count,
      pause.figures.of,
    ]),
    empty: 'Nothing is held or warned of.',
  });
}

async function show(context: CommandContext, id: string): Promise<void> {
  const db = await context.db();
  const pause = await requirePause(db, id);
  await print(context, pause);
}

async function release(context: CommandContext, id: string): Promise<void> {
  const db = await context.db();
  const pause = await requirePause(db, id);
  const released = await releasePause(db, pause, context.now());
  if (!released) throw new Failure(`that was released before; \`postern pause list\` shows what is held`);
  await sweepPauses(db, context.now());
  await print(context, released);
}

async function print({ db, out, now }: CommandContext, pause: AutoPause): Promise<void> {
  const { id, orgId, state, since, orgName, rule, figures, mails } = pause;
  const [held] = (await countHeld(await db(), orgId, [pause], now())) as [HeldCount];
  out.print(
    { ...pauseDocument(pause), held },
    {
      fields: {
        id,
        state,
        since: { time: since, past: true },
        organization: orgName,
        mail: pauseTitle(pause),
        rule: pauseRules[rule].label,
        count: `${figures.count} of ${figures.of}`,
        'mail held': `${held.isCut ? 'at least ' : ''}${held.count}`,
        'of it past its deadline': held.pastDeadline,
        ...Object.fromEntries(
          mails.map(({ emailId, recipient, reply }) => [emailId, `${recipient}: ${reply ?? 'complained'}`]),
        ),
      },
    },
  );
}
