/**
 * `postern queue retry | hold | release | cancel`: orders to mail that waits, to one email or to all that a filter
 * finds. What is being sent at that moment is left alone and counted. An order that moves nothing has failed, and says
 * what it found instead.
 */
import type { Command } from 'commander';
import type { EmailRecord } from '../../../db/events/emails.ts';
import {
  applyQueueAction,
  movable,
  type QueueAction,
  type QueueActionResult,
  type Selection,
} from '../../../db/queue/apply-queue-action.ts';
import type { DeliveryStatus } from '../../../glossary.ts';
import { compareKey } from '../../../mail/address.ts';
import { actionWords, beingSent, leftAlone } from '../../../operate/explain/action-words.ts';
import { address, choice, destination, domain, reason } from '../../args/arguments.ts';
import { requireEmail, requireOrganization } from '../../args/lookup.ts';
import type { CommandContext } from '../../command-context.ts';
import { Failure } from '../../failure.ts';

interface Options {
  domain?: string;
  destination?: string;
  org?: string;
  status?: DeliveryStatus;
  to?: string;
  reason: string;
}

export function actionCommands(queue: Command, context: CommandContext): void {
  for (const order of Object.keys(actionWords) as QueueAction[]) {
    const command = queue.command(order);
    command
      .description(actionWords[order].is)
      .argument('[SELECTOR]', 'emailId of one email; or use the filters instead')
      .option('--domain <D>', 'mail to this recipient domain', domain)
      .option(
        '--destination <NAME>',
        'mail to this destination, as named by `postern queue summary`',
        destination,
      )
      .option('--org <ORG>', 'mail of this organization, by id or name')
      .option(
        '--status <S>',
        `mail in this state: ${movable[order].join(', ')}`,
        choice('a status that this action applies to', movable[order]),
      )
      .option('--to <ADDRESS>', 'mail to this address', address)
      .requiredOption('--reason <R>', 'reason, shown by `email why` and in the events', reason)
      .action(async (emailId: string | undefined, options: Options) => {
        const { reason: _, ...filters } = options;
        if (emailId === undefined && Object.keys(filters).length === 0) {
          const give = 'an emailId, --domain, --destination, --org, --status or --to';
          command.error(`error: nothing selects the mail; give ${give}`, { exitCode: 2 });
        }
        await carryOut(context, order, emailId, options);
      });
  }
}

async function carryOut(
  { db, out, now }: CommandContext,
  order: QueueAction,
  emailId: string | undefined,
  { org, reason: why, ...filters }: Options,
): Promise<void> {
  const email = emailId === undefined ? null : await requireEmail(await db(), emailId);
  const orgId = org === undefined ? undefined : (await requireOrganization(await db(), org)).id;
  const selection: Selection = { ...filters, orgId, emailId: email?.id };
  const { did } = actionWords[order];
  const given = { order, reason: why, now: now() };
  const onProgress = (moved: number) => out.progress(`${moved} ${did} so far`);
  const done = await applyQueueAction(await db(), selection, { ...given, onProgress }).finally(() =>
    out.progress(''),
  );
  if (done.moved === 0) throw new Failure(`nothing was ${did}: ${found(order, done, email, filters.to)}`);
  const { moved, sending, left } = done;
  out.print(
    { order, reason: why, moved, sending, left },
    {
      facts: [
        [did, moved],
        ...(sending > 0 ? [['being sent', sending] as [string, number]] : []),
        ...Object.entries(left),
      ],
    },
  );
  if (sending > 0) out.note(`${beingSent(sending)}; try again in a moment`);
}

/** What there is instead of mail that the order is for. */
function found(
  order: QueueAction,
  { sending, left }: QueueActionResult,
  email: EmailRecord | null,
  to: string | undefined,
): string {
  if (sending > 0) return `${beingSent(sending)}; try again in a moment`;
  const only = `only ${movable[order].join(' or ')} mail can be`;
  if (email) {
    const asked = email.deliveries.filter(({ recipient }) => to === undefined || isSame(recipient, to));
    if (asked.length === 0) return `no such recipient of email ${email.id}`;
    return `${asked.map(({ recipient, status }) => `${recipient} is ${status}`).join(', ')}; ${only}`;
  }
  return leftAlone(order, left) ?? 'no queued mail matches; `postern queue list` shows the queue';
}

function isSame(recipient: string, to: string): boolean {
  return compareKey(recipient) === compareKey(to);
}
