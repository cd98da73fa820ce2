/**
 * `postern queue retry | hold | release | cancel`: actions on one email or on all mail that the filters match. Mail that is
 * being sent is left alone and counted. An action that changes nothing has failed, and says what it found instead.
 */
import type { Command } from 'commander';
import { address, choice, reason } from '#cli/args/arguments.ts';
import { addConsent, type Consent, isWanted } from '#cli/args/consent.ts';
import { emailIs, organizationId, requireEmail } from '#cli/args/lookup.ts';
import { addMailFilters, type MailFilters } from '#cli/args/mail-filters.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import {
  applyQueueAction,
  changeable,
  dryRunQueueAction,
  type QueueAction,
  type QueueActionResult,
  type Selection,
} from '#mail/queue/rows/apply-queue-action.ts';
import type { EmailRecord } from '#mail/record/rows/emails.ts';
import { actionWords, beingSent, leftAlone } from '#operate/explain/action-words.ts';
import { compareKey } from '#platform/values/address.ts';
import type { DeliveryStatus } from '#platform/values/glossary.ts';

interface Options extends MailFilters, Consent {
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
        `mail in this state: ${changeable[action].join(', ')}`,
        choice('a status that this action applies to', changeable[action]),
      )
      .option('--to <ADDRESS>', 'mail to this address', address)
      .requiredOption('--reason <R>', 'reason, shown by `email why` and in the events', reason)
      .action(async (emailId: string | undefined, options: Options) => {
        const { reason: _, yes: _yes, dryRun: _dryRun, ...filters } = options;
        if (emailId === undefined && Object.keys(filters).length === 0) {
          const give = 'an emailId, --domain, --destination, --org, --status or --to';
          command.error(`error: nothing selects the mail; give ${give}`, { exitCode: 2 });
        }
        await apply(context, action, emailId, options);
      });
    if (action === 'cancel') addConsent(command);
  }
}

async function apply(
  context: CommandContext,
  action: QueueAction,
  emailId: string | undefined,
  { org, reason: why, yes, dryRun, ...filters }: Options,
): Promise<void> {
  const { db, out, now } = context;
  const email = emailId === undefined ? null : await requireEmail(context, emailId);
  const selection = { ...filters, orgId: await organizationId(await db(), org), emailId: email?.id };
  const { past } = actionWords[action];
  if (action === 'cancel' && !(await isCancelWanted(context, selection, { yes, dryRun }))) return;
  const { changed, sending, left } = await applyQueueAction(await db(), selection, {
    action,
    reason: why,
    now: now(),
    onProgress: (count) => out.progress(`${count} ${past} so far`),
  });
  if (changed === 0) {
    const found = describeUnchanged(action, { changed, sending, left }, email, filters.to);
    throw new Failure(`nothing was ${past}: ${found}`);
  }
  out.print(
    { order: action, reason: why, moved: changed, sending, left },
    { fields: { [past]: changed, ...(sending > 0 && { 'being sent': sending }), ...left } },
  );
  if (sending > 0) out.note(`${beingSent(sending)}; try again in a moment`);
}

async function isCancelWanted(
  context: CommandContext,
  selection: Selection,
  consent: Consent,
): Promise<boolean> {
  const { changed, sending, left } = await dryRunQueueAction(await context.db(), selection, 'cancel');
  // The action itself says why there is nothing to cancel.
  if (changed === 0 && !consent.dryRun) return true;
  const effect = {
    question: `cancel ${changed} deliver${changed === 1 ? 'y' : 'ies'} permanently`,
    fields: { 'would be canceled': changed, ...(sending > 0 && { 'being sent': sending }), ...left },
    document: { order: 'cancel', moved: changed, sending, left },
  };
  return isWanted(context, effect, consent);
}

/** The selected mail that the action does not apply to. */
function describeUnchanged(
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
  return `${states}; only ${changeable[action].join(' or ')} mail can be`;
}
