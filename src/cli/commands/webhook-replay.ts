/** `postern webhook replay`: posts events to an endpoint again. A running server does it within a second. */
import type { Command } from 'commander';
import { type Moment, moment, timeOf } from '#cli/args/arguments.ts';
import { requireEventId, requireWebhook } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { type ReplaySelection, replay } from '#mail/webhooks/rows/webhook-replay-rows.ts';

interface Options {
  failed?: true;
  since?: Moment;
  until?: Moment;
}

export function replayCommand(webhook: Command, context: CommandContext): void {
  webhook
    .command('replay')
    .description('Post events again: one event, all failed ones, or those of a period.')
    .argument('<ID>', 'id of the webhook, or its end')
    .argument('[EVENT]', 'id of the event: the webhook-id of its posts')
    .option('--failed', 'all events whose posts failed permanently')
    .option('--since <TIME>', 'events since this time: 2026-01-31T12:00:00Z, or 2h for two hours ago', moment)
    .option('--until <TIME>', 'events until this time', moment)
    .action((id: string, event: string | undefined, options: Options) => run(context, id, event, options));
}

async function run(
  { db, out, now }: CommandContext,
  id: string,
  event: string | undefined,
  options: Options,
): Promise<void> {
  const webhook = await requireWebhook(await db(), id);
  const eventId = event === undefined ? undefined : await requireEventId(await db(), event);
  const count = await replay(await db(), webhook, selectionOf(eventId, options, now()), now());
  if (event !== undefined && count === 0) {
    throw new Failure(`there is no event with the id "${event}" in the organization of this webhook`);
  }
  out.print({ id: webhook.id, replayed: count }, { fields: { replayed: count } });
  if (webhook.status === 'disabled') {
    out.note(`the webhook is disabled: nothing is posted until \`postern webhook enable ${webhook.id}\``);
  }
}

function selectionOf(
  eventId: string | undefined,
  { failed, since, until }: Options,
  now: number,
): ReplaySelection {
  const selectors = [eventId, failed, since ?? until].filter((each) => each !== undefined);
  if (selectors.length !== 1 || (until && !since)) {
    throw new Failure(
      'nothing selects the events to post again; give the id of an EVENT, --failed, or --since TIME [--until TIME]',
    );
  }
  if (eventId !== undefined) return { eventId };
  if (failed) return { failed };
  return { since: timeOf(since!, now), until: until ? timeOf(until, now) : now };
}
