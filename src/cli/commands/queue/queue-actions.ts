/**
 * `postern queue retry | hold | release | cancel`: actions on one email or on all mail that the filters match. Mail that is
 * being sent is left alone and counted. An action that changes nothing has failed, and says what it found instead.
 */
import type { Command } from 'commander';
import type { EmailRecord } from '../../../db/events/emails.ts';
import {
  applyQueueAction,
  movable,
  type QueueAction,
  type QueueActionResult,
} from '../../../db/queue/apply-queue-action.ts';
import type { DeliveryStatus } from '../../../glossary.ts';
import { compareKey } from '../../../mail/address.ts';
import { actionWords, beingSent, leftAlone } from '../../../operate/explain/action-words.ts';
import { address, choice, reason } from '../../args/arguments.ts';
import { emailIs, organizationId, requireEmail } from '../../args/lookup.ts';
import { addMailFilters, type MailFilters } from '../../args/mail-filters.ts';
import type { CommandContext } from '../../command-context.ts';
import { Failure } from '../../failure.ts';

interface Options extends MailFilters {
  status?: DeliveryStatus;
  to?: string;
  reason: string;
}

export function actionCommands(queue: Command, context: CommandContext): void {
  for (const action of Object.keys(actionWords) as QueueAction[]) {
    const command = queue
      .command(action)
      .description(actionWords[action].description)
      .argument('[SELECTOR]', `one email: ${emailIs}; or use the filters instead`);
    addMailFilters(command, 'mail')
      .option(
        '--status <S>',
        `mail in this state: ${movable[action].join(', ')}`,
        choice('a status that this action applies to', movable[action]),
      )
      .option('--to <ADDRESS>', 'mail to this address', address)
      .requiredOption('--reason <R>', 'reason, shown by `email why` and in the events', reason)
      .action(async (emailId: string | undefined, options: Options) => {
        const { reason: _, ...filters } = options;
        if (emailId === undefined && Object.keys(filters).length === 0) {
          const give = 'an emailId, --domain, --destination, --org, --status or --to';
          command.error(`error: nothing selects the mail; give ${give}`, { exitCode: 2 });
        }
        await apply(context, action, emailId, options);
      });
  }
}

async function apply(
  context: CommandContext,
  action: QueueAction,
  emailId: string | undefined,
  { org, reason: why, ...filters }: Options,
): Promise<void> {
  const { db, out, now } = context;
  const email = emailId === undefined ? null : await requireEmail(context, emailId);
  const orgId = await organizationId(await db(), org);
  const { past } = actionWords[action];
  const { moved, sending, left } = await applyQueueAction(
    await db(),
    { ...filters, orgId, emailId: email?.id },
    {
      action,
      reason: why,
      now: now(),
      onProgress: (count) => out.progress(`${count} ${past} so far`),
    },
  );
  if (moved === 0) {
    const found = describeUnmoved(action, { moved, sending, left }, email, filters.to);
    throw new Failure(`nothing was ${past}: ${found}`);
  }
  out.print(
    { order: action, reason: why, moved, sending, left },
    { fields: { [past]: moved, ...(sending > 0 && { 'being sent': sending }), ...left } },
  );
  if (sending > 0) out.note(`${beingSent(sending)}; try again in a moment`);
}

/** The selected mail that the action does not apply to. */
function describeUnmoved(
  action: QueueAction,
  { sending, left }: QueueActionResult,
  email: EmailRecord | null,
  to: string | undefined,
): string {
  if (sending > 0) return `${beingSent(sending)}; try again in a moment`;
  if (!email)
    return leftAlone(action, left) ?? 'no queued mail matches; `postern queue list` shows the queue';
  const selected = email.deliveries.filter(
    ({ recipient }) => to === undefined || compareKey(recipient) === compareKey(to),
  );
  if (selected.length === 0) return `no such recipient of email ${email.id}`;
  const states = selected.map(({ recipient, status }) => `${recipient} is ${status}`).join(', ');
  return `${states}; only ${movable[action].join(' or ')} mail can be`;
}
