/** Follows an email: prints its events as they come, until nothing more is sent for any recipient. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandContext } from '#cli/command-context.ts';
import type { LogLine } from '#cli/maillog/log-filter.ts';
import { readable } from '#cli/render/log-view.ts';
import { local } from '#cli/render/times.ts';
import { replyText } from '#mail/deliver/outcome.ts';
import { type EmailRecord, findEmail } from '#mail/record/rows/emails.ts';
import { iso } from '#platform/base/clock.ts';
import { isFinal } from '#platform/values/states.ts';

const pollMs = 300;

/** Returns the email as it is at the end, or when the watch was stopped; null if it is gone. */
export async function watchEmail(
  context: CommandContext,
  emailId: string,
  stopped: AbortSignal,
): Promise<EmailRecord | null> {
  const { out } = context;
  const db = await context.db();
  const seen = new Set<string>();
  let email: EmailRecord | null;
  for (;;) {
    email = await findEmail(db, emailId, null);
    if (!email) break;
    for (const event of email.events) {
      if (seen.has(event.id)) continue;
      seen.add(event.id);
      if (!out.json) printEvent(context, lineOf(emailId, event));
    }
    if (stopped.aborted || email.deliveries.every(({ status }) => isFinal(status))) break;
    out.progress(waitText(email));
    await sleep(pollMs, undefined, { signal: stopped }).catch(() => {});
  }
  out.progress('');
  if (stopped.aborted)
    out.note(`the email is still sent; \`postern email why ${emailId}\` explains its status`);
  return email;
}

function printEvent({ out }: CommandContext, line: LogLine): void {
  const { time, event, recipient = null, reply = null } = line;
  const rows = [[time, event, recipient, reply]];
  out.print(null, { lines: out.terminal ? [readable(line, out.columns)] : [], rows });
}

type EmailEvent = EmailRecord['events'][number];

/** The event as a line of the mail log. */
function lineOf(emailId: string, { type, at, recipient, data }: EmailEvent): LogLine {
  const event = type.replace(/^email\./, '');
  // biome-ignore lint/suspicious/noExplicitAny: the members of `data` depend on the type of the event
  const { bounce, mx, tls, response, attempt, nextAttemptAt, reason, ...own } = data as Record<string, any>;
  const reply = bounce?.diagnostic ?? own.diagnostic ?? (response && replyText(response)) ?? reason ?? '';
  return {
    time: iso(at),
    event,
    msg: `${event} ${reply}`,
    emailId,
    recipient: recipient ?? '',
    ...(mx && { host: mx.host, address: mx.address }),
    reply,
    category: bounce?.category ?? own.category ?? null,
    tls: tls?.protocol ?? null,
    attempt,
    nextAttemptAt,
  };
}

/** Says in one line what it waits for. */
function waitText({ deliveries }: EmailRecord): string {
  const open = deliveries.filter(({ status }) => !isFinal(status));
  const next = Math.min(...open.map(({ nextAttemptAt }) => nextAttemptAt ?? Number.POSITIVE_INFINITY));
  const when =
    next > Date.now() && Number.isFinite(next) ? `; next attempt ${local(next).split(' ')[1]}` : '';
  const states = [...new Set(open.map(({ status }) => status))].join(', ');
  return `waiting: ${open.length} ${states}${when} (Ctrl-C stops watching, not the mail)`;
}
