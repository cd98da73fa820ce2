/**
 * `postern send`: sends one email through the checks and the commit of the API, and with --watch follows it until nothing
 * more is sent. The running server delivers it.
 */
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { requireNotPaused } from '#accounts/api-keys.ts';
import type { Organization } from '#accounts/rows/organizations.ts';
import { address, listOf } from '#cli/args/arguments.ts';
import { readGiven } from '#cli/args/given-file.ts';
import { requireOwner, withOwner } from '#cli/args/lookup.ts';
import { type CommandContext, notServed } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { sendSchema, toRequest } from '#front/api/send/schema.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { telemetry } from '#mail/record/telemetry.ts';
import { newId } from '#platform/base/id.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { createAcceptHere } from './accept-here.ts';
import { watchEmail } from './watch-email.ts';

interface Content {
  from: string;
  subject: string;
  text?: string;
  html?: string;
  attach?: string[];
}

interface Options extends Content {
  org?: string;
  watch?: true;
}

const defaultSubject = 'A test from Postern';
const defaultText = 'This mail was sent by `postern send`.\n';

export function sendCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('send')
    .description('Send an email; with --watch, follow it to its end and exit with 1 if it is not delivered.')
    .argument('<TO...>', 'addresses of the recipients', listOf(address))
    .requiredOption('--from <SENDER>', 'sender: an address of a verified domain, or "Name <address>"')
    .option('--subject <S>', 'the subject', defaultSubject)
    .option('--text <TEXT>', 'the text; @FILE reads a file, - reads standard input')
    .option('--html <HTML>', 'the HTML; @FILE reads a file, - reads standard input')
    .option(
      '--attach <FILE>',
      'a file to attach',
      listOf((file) => file),
    )
    .option('--watch', 'follow the email until nothing more is sent');
  withOwner(command).action((to: string[], options: Options) => run(context, to, options));
}

async function run(context: CommandContext, to: string[], options: Options): Promise<void> {
  const { out } = context;
  const owner = await requireOwner(context, options.org);
  const { emailId, id, accepted, ...skipped } = await sendHere(context, owner, to, options);
  const fields = {
    emailId,
    accepted: accepted.join(' '),
    ...(skipped.suppressed.length > 0 && { suppressed: skipped.suppressed.join(' ') }),
    ...(skipped.insufficientCredit.length > 0 && {
      'without credit': skipped.insufficientCredit.join(' '),
    }),
  };
  if (!out.json || !options.watch) out.print({ emailId, id, accepted, ...skipped }, { fields });
  if (!(await context.isServed())) {
    out.warn(`${notServed}; the email is queued`);
    if (options.watch) context.exitCode = 1;
  } else if (options.watch) {
    const email = await watchEmail(context, emailId, context.abortOn('SIGINT'));
    if (out.json && email) out.print(telemetry(email));
    if (!email?.deliveries.every(({ status }) => status === 'delivered')) context.exitCode = 1;
  } else out.note(`\`postern email why ${emailId}\` explains its status; --watch follows it`);
}

/** Accepts an email of an organization in this process. */
export async function sendHere(
  context: CommandContext,
  owner: Pick<Organization, 'id' | 'name' | 'pause'>,
  to: string[],
  content: Content,
) {
  const request = await requestOf(to, content, context.process.stdin);
  const accept = await createAcceptHere(context);
  try {
    requireNotPaused(owner.pause);
    return (await accept(request, { orgId: owner.id, keyId: null, scopes: [] })).answer;
  } catch (error) {
    throw error instanceof Refusal ? new Failure(remedyOf(error, content, owner.name)) : error;
  }
}

async function requestOf(to: string[], content: Content, stdin: Readable): Promise<SendRequest> {
  const { from, subject, attach = [] } = content;
  const [text, html] = [await contentOf(content.text, stdin), await contentOf(content.html, stdin)];
  const files = await Promise.all(attach.map((path) => readGiven(path, stdin)));
  const parsed = sendSchema.safeParse({
    to,
    from,
    subject,
    text: text ?? (html === undefined ? defaultText : undefined),
    html,
    attachments: files.map((file, at) => ({
      filename: basename(attach[at]!),
      content: file.toString('base64'),
    })),
  });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Failure(
      `${issue!.path.join('.') || 'the email'}: ${issue!.message}; correct it and send again`,
    );
  }
  const fields = toRequest(parsed.data, async () => []);
  // Without a key of its own, a second test within a minute would be taken for a repetition of the first.
  return { ...fields, idempotency: { key: newId(), requestHash: '' }, requestId: `send-${newId()}` };
}

async function contentOf(given: string | undefined, stdin: Readable): Promise<string | undefined> {
  const file = given === '-' ? '-' : /^@(.*)/s.exec(given ?? '')?.[1];
  return file === undefined ? given : (await readGiven(file, stdin)).toString();
}

/** The API's message, and the command that helps. */
function remedyOf({ code, message }: Refusal, { from }: Content, org: string): string {
  const domain = from.replace(/>\s*$/, '').split('@').at(-1);
  const helps: Partial<Record<Refusal['code'], string>> = {
    DOMAIN_NOT_FOUND: `\`postern domain add ${domain}\` registers it`,
    DOMAIN_NOT_VERIFIED: `\`postern domain verify ${domain}\` checks its DNS records`,
    ALL_RECIPIENTS_SUPPRESSED: '`postern suppression remove ADDRESS` lets mail through again',
    INSUFFICIENT_CREDITS: '`postern credits grant ORG N` adds some',
  };
  const help = helps[code];
  return `${message.replace(/\.$/, '')} (organization ${org})${help ? `; ${help}` : ''}`;
}
