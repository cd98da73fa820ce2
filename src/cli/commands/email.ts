/** `postern email`: what became of one email, why, and its exact bytes. */
import type { Command } from 'commander';
import { iso } from '../../base/clock.ts';
import { readPause } from '../../db/accounts/pauses.ts';
import { type AttemptRecord, type EmailRecord, listAttempts } from '../../db/events/emails.ts';
import { readDestinationStatuses, routesOf } from '../../db/queue/destination-status-rows.ts';
import { poolOf } from '../../db/queue/ip-pools.ts';
import { readMessages } from '../../db/queue/lease-statements.ts';
import { compareKey } from '../../mail/address.ts';
import { reasonsOf } from '../../operate/explain/destination-status.ts';
import { storiesOf, type WhyFacts } from '../../operate/explain/why.ts';
import { telemetry } from '../../record/telemetry.ts';
import { address } from '../args/arguments.ts';
import { requireEmail } from '../args/lookup.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';
import { attemptLines, attemptRows, emailFacts, recipientTable } from '../render/email-view.ts';
import { coloured, dim, type Output } from '../render/output.ts';
import { local, relative } from '../render/times.ts';
import { why } from '../render/why-view.ts';

export function emailCommands(program: Command, { db, out, now, isServed }: CommandContext): void {
  const email = program.command('email').description('Show the status, history and source of an email.');
  const withId = (command: string, description: string) =>
    email.command(command).description(description).argument('<ID>', 'emailId from the response to the send');

  withId('show', 'Show an email with all its attempts and SMTP transcripts.').action(async (id: string) => {
    const found = await requireEmail(await db(), id);
    printStory(out, found, await listAttempts(await db(), found.id), now());
  });

  withId(
    'why',
    'Explain the status of each recipient: the last reply, its meaning, and the next step.',
  ).action(async (id: string) => {
    const found = await requireEmail(await db(), id);
    const attempts = await listAttempts(await db(), found.id);
    const standings = await readDestinationStatuses(await db(), now(), await isServed());
    const pool = await poolOf(await db(), found.orgId);
    const pause = await readPause(await db(), found.orgId);
    const routes = await routesOf(
      await db(),
      found.deliveries.map(({ domain }) => domain),
    );
    printReasons(out, storiesOf(found, { attempts, standings, routes, pool, pause, now: now() }), found);
  });

  withId('source', 'Print the exact message bytes to standard output.')
    .option(
      '--to <ADDRESS>',
      'recipient whose copy to print, if tracking made one copy per recipient',
      address,
    )
    .action(async (id: string, { to }: { to?: string }) => {
      const found = await requireEmail(await db(), id);
      const [source] = await readMessages(await db(), [theMessage(found, to)]);
      if (!source?.length) throw new Failure(`the message of email ${found.id} has been deleted (${keep})`);
      if (out.json) out.print({ emailId: found.id, encoding: 'base64', source: source.toString('base64') });
      else out.write(source);
    });
}

const keep = 'POSTERN_KEEP_MESSAGES sets how long messages are kept after the last delivery';

function theMessage({ id, deliveries }: EmailRecord, to: string | undefined): string {
  const asked = deliveries.filter(
    ({ recipient }) => to === undefined || compareKey(recipient) === compareKey(to),
  );
  if (asked.length === 0) throw new Failure(`email ${id} is not for ${to}`);
  const ids = new Set(asked.flatMap(({ messageId }) => messageId ?? []));
  const [messageId, ...others] = ids;
  if (messageId === undefined)
    throw new Failure(
      to === undefined ? `no message of email ${id} was queued` : `no message was queued for ${to}`,
    );
  if (others.length > 0)
    throw new Failure(`email ${id} has a copy for each recipient; select one with --to ADDRESS`);
  return messageId;
}

function printStory(out: Output, email: EmailRecord, attempts: AttemptRecord[], now: number): void {
  const attemptsOf = (at: number) =>
    attempts.filter(({ deliveryId }) => deliveryId === email.deliveries[at]!.id);
  const document = telemetry(email);
  out.print(
    {
      ...document,
      recipients: document.recipients.map((each, at) => ({
        ...each,
        attemptLog: attemptsOf(at).map(attemptDocument),
      })),
    },
    emailFacts(email, document.status),
    recipientTable(email, now),
    ...email.deliveries.map((delivery, at) => ({
      lines: attemptsOf(at).flatMap((attempt) => attemptLines(delivery, attempt)),
      rows: attemptsOf(at).flatMap((attempt) => attemptRows(delivery, attempt)),
    })),
  );
}

function attemptDocument(attempt: AttemptRecord) {
  const { outcome, category, fault, origin, diagnostic, possibleDuplicate, rule } = attempt.outcome;
  return {
    number: attempt.number,
    startedAt: iso(attempt.startedAt),
    endedAt: iso(attempt.endedAt),
    ...{ outcome, category, fault, origin, diagnostic, possibleDuplicate, rule: rule ?? null },
    response: attempt.reply,
    mx: attempt.mx,
    tls: attempt.tls,
    transcript: attempt.transcript,
  };
}

function printReasons(out: Output, stories: WhyFacts[], email: EmailRecord): void {
  const forPeople = (now: number) => (time: number) => `${local(time)} (${relative(time, now)})`;
  const told = stories.map((story) => ({
    ...story,
    sentence: why(story, out.terminal && !out.json ? forPeople(story.now) : iso),
  }));
  out.print(
    {
      emailId: email.id,
      status: telemetry(email).status,
      recipients: told.map(({ delivery, last, sentence, place, condition }) => ({
        address: delivery.recipient,
        status: delivery.status,
        why: sentence,
        destination: place.destination,
        condition: delivery.nextAttemptAt === null ? null : condition.is,
        ...reasonsOf(condition),
        evidence: last && attemptDocument(last),
      })),
    },
    ...told.map(({ delivery, last, sentence }) => ({
      lines: [
        `${delivery.recipient}  ${coloured(delivery.status)}`,
        sentence,
        ...(last ? ['', ...attemptLines(delivery, last)] : [dim('There has been no attempt.')]),
      ],
      rows: [
        ['recipient', delivery.recipient, delivery.status, sentence],
        ...(last ? attemptRows(delivery, last) : []),
      ],
    })),
  );
}
