/** `postern email`: the history of one email, the explanation of its status, and its exact bytes. */
import type { Command } from 'commander';
import { address, reason, timeWithOffset } from '#cli/args/arguments.ts';
import { emailIs, findEmailId, requireEmail } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import {
  attemptDocument,
  attemptLines,
  attemptRows,
  emailFields,
  recipientTable,
} from '#cli/render/email-view.ts';
import { coloured, dim, type Output, type OutputBlock, sanitize } from '#cli/render/output.ts';
import { local } from '#cli/render/times.ts';
import { why } from '#cli/render/why-view.ts';
import { wrap } from '#cli/render/width.ts';
import { findMessage } from '#mail/queue/rows/lease-statements.ts';
import { reschedule } from '#mail/queue/rows/scheduled-mail.ts';
import { cancelEmail } from '#mail/record/rows/cancel-email.ts';
import { type DeliveryRecord, type EmailRecord, listAttempts } from '#mail/record/rows/emails.ts';
import { telemetry } from '#mail/record/telemetry.ts';
import { conditionDocument } from '#operate/condition/condition-words.ts';
import type { WhyInput } from '#operate/explain/why.ts';
import { readWhyInputs } from '#operate/explain/why-input.ts';
import { iso } from '#platform/base/clock.ts';
import { relative } from '#platform/base/span.ts';
import { compareKey } from '#platform/values/address.ts';
import { serverOrgId } from '#platform/values/glossary.ts';
import { scheduledAtRefusal } from '#platform/values/send-times.ts';
import { isFinal } from '#platform/values/states.ts';
import { listCommand } from './email-list.ts';
import { isEmpty, reportBlock, reportDocument, reportOn } from './why-address.ts';

export function emailCommands(program: Command, context: CommandContext): void {
  const email = program.command('email').description('List, show, cancel or reschedule emails.');
  const named = (command: string, description: string) =>
    email.command(command).description(description).argument('<ID>', emailIs);

  listCommand(email, context);

  named('show', 'Show an email with all its attempts and SMTP transcripts.').action((id: string) =>
    show(context, id),
  );

  named(
    'why',
    'Explain the status of each recipient: the last reply, its meaning, and the next step.',
  ).action((id: string) => explain(context, id));

  named('source', 'Print the exact message bytes to standard output.')
    .option(
      '--to <ADDRESS>',
      'recipient whose copy to print, if tracking made one copy per recipient',
      address,
    )
    .action((id: string, { to }: { to?: string }) => printSource(context, id, to));

  named(
    'cancel',
    'Cancel an email for every recipient that it has not been sent to; those never attempted are refunded.',
  )
    .option('--reason <R>', 'reason, shown by `email why` and in the events', reason, 'on the command line')
    .action((id: string, options: { reason: string }) => cancel(context, id, options.reason));

  named('reschedule', 'Move a scheduled email to another time, with its expiry.')
    .argument('<TIME>', 'ISO 8601 with an offset, such as 2026-12-24T18:00:00+01:00', timeWithOffset)
    .action((id: string, at: number) => changeTime(context, id, at));
}

async function show(context: CommandContext, id: string): Promise<void> {
  const { db, out, now } = context;
  const email = await requireEmail(context, id);
  const attempts = await listAttempts(await db(), email.id);
  const attemptsOf = ({ id: own }: DeliveryRecord) => attempts.filter(({ deliveryId }) => deliveryId === own);
  const document = telemetry(email);
  out.print(
    {
      ...document,
      recipients: document.recipients.map((recipient, at) => ({
        ...recipient,
        attemptLog: attemptsOf(email.deliveries[at]!).map(attemptDocument),
      })),
    },
    emailFields(email, document.status),
    recipientTable(email, now()),
    ...email.deliveries.map((delivery) => ({
      lines: attemptsOf(delivery).flatMap((attempt) => attemptLines(delivery, attempt, out.columns)),
      rows: attemptsOf(delivery).flatMap((attempt) => attemptRows(delivery, attempt)),
    })),
  );
}

async function explain(context: CommandContext, name: string): Promise<void> {
  const { db, out, now, isServed } = context;
  const id = await findEmailId(context, name);
  const report = await reportOn(context, name, id !== null);
  if (id === null && report) {
    const document = { emailId: null, address: name, recipients: [], ...reportDocument(report) };
    return out.print(document, reportBlock(context, name, report, true));
  }
  const email = await requireEmail(context, id ?? name);
  const attempts = await listAttempts(await db(), email.id);
  const inputs = await readWhyInputs(await db(), email, { attempts, now: now(), served: await isServed() });
  const extra = report && !isEmpty(report) ? reportDocument(report) : {};
  const blocks = report && !isEmpty(report) ? [reportBlock(context, name, report, false)] : [];
  printReasons(out, inputs, email, { document: extra, blocks });
}

async function cancel(context: CommandContext, id: string, why: string): Promise<void> {
  const { db, out, now } = context;
  const email = await requireEmail(context, id);
  const isOpen = email.deliveries.some(({ status }) => !isFinal(status));
  const canceled = await cancelEmail(await db(), email, { reason: why, bySender: false, now: now() });
  if (!isOpen || !canceled?.canceled.length)
    throw new Failure(`nothing of email ${email.id} could be canceled`);
  const { tooLate } = canceled;
  out.print(
    { emailId: email.id, ...canceled },
    {
      fields: {
        canceled: canceled.canceled.join(' '),
        ...(tooLate.length > 0 && { 'too late': tooLate.join(' ') }),
      },
    },
  );
}

async function changeTime(context: CommandContext, id: string, at: number): Promise<void> {
  const { db, out, now } = context;
  const { id: emailId } = await requireEmail(context, id);
  const refusal = scheduledAtRefusal(at, now());
  if (refusal) throw new Failure(refusal.issues[0]!.message);
  const result = await reschedule(await db(), { emailId, orgId: null, at, now: now() });
  if (result !== 'rescheduled') throw new Failure(`email ${emailId} is not scheduled, or its time has come`);
  out.print({ emailId, scheduledAt: iso(at) }, { fields: { 'scheduled for': { time: at } } });
}

async function printSource(context: CommandContext, id: string, to: string | undefined): Promise<void> {
  const { db, out } = context;
  const email = await requireEmail(context, id);
  if (email.orgId === serverOrgId)
    throw new Failure(`email ${email.id} is mail of this server: its link is for its recipient only`);
  const source = await findMessage(await db(), selectMessage(email, to));
  if (!source) throw new Failure(`the message of email ${email.id} has been deleted (${keep})`);
  if (out.json) out.print({ emailId: email.id, encoding: 'base64', source: source.toString('base64') });
  else out.write(source);
}

const keep = 'POSTERN_KEEP_MESSAGES sets how long messages are kept after the last delivery';

/** The id of the message row for recipient `to`, or of the one message that all recipients have in common. */
function selectMessage({ id, deliveries }: EmailRecord, to: string | undefined): string {
  const selected = deliveries.filter(
    ({ recipient }) => to === undefined || compareKey(recipient) === compareKey(to),
  );
  if (selected.length === 0) throw new Failure(`email ${id} is not for ${to}`);
  const ids = new Set(selected.flatMap(({ messageId }) => messageId ?? []));
  const [messageId, ...others] = ids;
  if (messageId === undefined)
    throw new Failure(
      to === undefined ? `no message of email ${id} was queued` : `no message was queued for ${to}`,
    );
  if (others.length > 0)
    throw new Failure(`email ${id} has a copy for each recipient; select one with --to ADDRESS`);
  return messageId;
}

interface Extra {
  document: object;
  blocks: OutputBlock[];
}

function printReasons(out: Output, inputs: WhyInput[], email: EmailRecord, extra: Extra): void {
  const readableTime = (now: number) => (time: number) => `${local(time)} (${relative(time, now)})`;
  const explained = inputs.map((each) => ({
    ...each,
    sentence: why(each, out.terminal && !out.json ? readableTime(each.now) : iso),
  }));
  out.print(
    {
      emailId: email.id,
      status: telemetry(email).status,
      recipients: explained.map(({ delivery, last, sentence, condition }) => ({
        address: delivery.recipient,
        status: delivery.status,
        why: sentence,
        destination: condition.destination,
        condition: delivery.nextAttemptAt === null ? null : conditionDocument(condition),
        evidence: last && attemptDocument(last),
      })),
      ...extra.document,
    },
    ...explained.map(({ delivery, last, sentence }) => ({
      lines: [
        `${delivery.recipient}  ${coloured(delivery.status)}`,
        ...wrap(sanitize(sentence).split(' '), out.columns),
        ...(last ? ['', ...attemptLines(delivery, last, out.columns)] : [dim('There has been no attempt.')]),
      ],
      rows: [
        ['recipient', delivery.recipient, delivery.status, sentence],
        ...(last ? attemptRows(delivery, last) : []),
      ],
    })),
    ...extra.blocks,
  );
}
