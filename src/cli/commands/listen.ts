/**
 * `postern listen`: posts each new event, signed like a webhook, to a URL on the developer's own machine. It reads the
 * database itself, so it needs no running server. Each event is posted once; a failure is printed and not retried.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { eventTypes, url, webhookSecret } from '#cli/args/arguments.ts';
import { organizationId } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { receivedBodies } from '#cli/posted-mail.ts';
import { type Output, sanitize } from '#cli/render/output.ts';
import { outwardEvent } from '#mail/record/event.ts';
import { type EventRecord, readEvents, settledPosition } from '#mail/record/rows/read-events.ts';
import { newStandardSecret } from '#mail/webhooks/formats/standard-format.ts';
import type { MakeReceivedBody } from '#mail/webhooks/received/received-bodies.ts';
import { signedPost, signedReceived } from '#mail/webhooks/signed-post.ts';

interface Options {
  forward: string;
  org?: string;
  event?: string[];
  secret?: string;
}

const pollMs = 250;
const timeoutMs = 15_000;
const pageSize = 100;

export function listenCommands(program: Command, context: CommandContext): void {
  program
    .command('listen')
    .description('Post new events to a local URL, signed like webhooks; for development.')
    .requiredOption('--forward <URL>', 'URL to post the events to', url)
    .option('--org <ORG>', 'only events of this organization, by id or name')
    .option('--event <T>', 'only events of this type', eventTypes)
    .option(
      '--secret <SECRET>',
      'secret to sign with (whsec_…); without it, a new one is generated',
      webhookSecret,
    )
    .action((options: Options) => listen(context, options));
}

async function listen(context: CommandContext, options: Options): Promise<void> {
  const { out } = context;
  const db = await context.db();
  const orgId = (await organizationId(db, options.org)) ?? null;
  const secret = options.secret ?? newStandardSecret();
  const makeBody = await receivedBodies(context);
  let after = await settledPosition(db);
  out.warn(`forwarding to ${options.forward}, signed with ${secret}; press Ctrl-C to stop`);
  const end = context.abortOn();
  while (!end.aborted) {
    const page = await readEvents(db, { orgId, after, limit: pageSize, types: options.event });
    for (const event of page.events) {
      const { id, ...described } = outwardEvent(event);
      const begun = performance.now();
      const response = await forward(event, { url: options.forward, secret, now: context.now(), makeBody });
      printResult(out, { id, ...described, ...response, ms: Math.round(performance.now() - begun) });
    }
    after = page.position;
    if (!page.isMore) await sleep(pollMs, undefined, { signal: end }).catch(() => {});
  }
}

interface PostResult {
  status: number | null;
  error: string | null;
}

interface Forwarding {
  url: string;
  secret: string;
  now: number;
  makeBody: MakeReceivedBody;
}

async function forward(event: EventRecord, { url, secret, now, makeBody }: Forwarding): Promise<PostResult> {
  try {
    const signAs = { format: 'standard', secrets: [secret], now, url } as const;
    const { headers, body } = await (event.type === 'email.received'
      ? signedReceived(event, signAs, makeBody)
      : signedPost(event, signAs));
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body: new Uint8Array(Buffer.from(body)),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    return { status: response.status, error: response.ok ? null : `answered ${response.status}` };
  } catch (error) {
    const { message, cause } = error as Error & { cause?: Error };
    return { status: null, error: cause?.message || message };
  }
}

interface Result extends PostResult {
  id: string;
  type: string;
  timestamp: string;
  recipient: string | null;
  ms: number;
}

/** With --json one document per line, because the output has no end. */
function printResult(out: Output, result: Result): void {
  const { timestamp, type, recipient, status, error, ms } = result;
  const event = [timestamp, type, recipient ?? ''].join('  ').trimEnd();
  const readable = `${sanitize(event)}  ${sanitize(error ?? String(status))} in ${ms} ms`;
  out.write(`${out.json ? JSON.stringify(result) : readable}\n`);
}
