/** The output of `postern dev`: how to use the server, and one line for each event of a mail. */
import { styleText } from 'node:util';
import { type LogLine, readLine } from '#cli/maillog/log-filter.ts';
import { coloured, dim, type Output, sanitize } from '#cli/render/output.ts';
import { sendSamples } from '#front/api/send-samples.ts';
import type { EventRecord } from '#mail/record/rows/read-events.ts';
import type { WebhookAttemptRecord } from '#mail/webhooks/rows/webhook-attempts.ts';
import { iso } from '#platform/base/clock.ts';
import { receivedTestDomain, testDomain } from '#platform/values/test-route.ts';

export interface DevServer {
  url: string;
  signIn: string;
  inbox: string;
  key: string;
  smtp: { host: string; port: number; user: string };
  domain: string;
  directory: string;
  /** Commands for this server, one a line, after a change into its directory. */
  commands: string[];
}

export function printStart(out: Output, server: DevServer): void {
  out.write(out.json ? `${JSON.stringify(server)}\n` : introduction(out, server));
}

function introduction(out: Output, server: DevServer): string {
  const { url, signIn, key, smtp, domain, directory, commands } = server;
  const bold = (text: string) => (out.terminal ? styleText('bold', text) : text);
  const samples = sendSamples({ url, key, smtp, from: `Shop <shop@${domain}>` })
    .map(({ name, code }) => `${bold(name)}\n${code}`)
    .join('\n\n');
  return `${bold('Postern for development: no mail leaves this machine.')} Ctrl-C stops it.

Inbox      ${signIn}
API        ${url}
Key        ${key}
SMTP       host ${smtp.host}, port ${smtp.port}, no encryption, user ${smtp.user}, password: the key
Senders    any address at ${domain}; add domains in the dashboard or with --domain
Data       ${directory}; --fresh discards it
Commands   ${commands.join(`\n${' '.repeat('Commands   '.length)}`)}

${samples}

${bold('Recipients')} that behave as they are named, at any domain: unknown@, full@, greylist@, deferred@, slow@, complain@.
They do at ${testDomain} with the test keys of a real server, too. Mail to all others is delivered to the inbox.
Mail to any address at ${receivedTestDomain} comes in as mail for your application: see \`email.received\`.

${bold('Mail')}
`;
}

export function printEvent(out: Output, event: EventRecord, emails: string): void {
  const { type, at, recipient, email, data } = event;
  // The mail log says more about a repeat.
  if (type === 'email.received') printReceived(out, event, emails);
  if (email === null || type === 'email.repeated') return;
  const url = `${emails}/${email.id}`;
  const verb = type.replace(/^email\./, '');
  const reason = verb === 'delivered' ? '' : reasonIn(data);
  const document = { type, timestamp: iso(at), recipient, subject: email.subject, url };
  print(out, { at, verb, words: [recipient ?? '', email.subject, reason], url, document });
}

function printReceived(out: Output, { type, at, recipient, data }: EventRecord, emails: string): void {
  const url = `${emails.replace(/emails$/, 'received')}/${data.receivedId}`;
  const subject = String(data.subject);
  const document = { type, timestamp: iso(at), recipient, subject, url };
  print(out, { at, verb: 'received', words: [recipient ?? '', subject], url, document });
}

/**
 * Lines of the mail log that no event tells of: refused sends, repeats, ignored members. The log has a line for each recipient; the
 * equal ones of a call are one line here.
 */
export function printLogLines(out: Output, texts: string[]): void {
  const told = texts.map(readLine).flatMap((line) => (line === null ? [] : toldBy(line)));
  for (const [first, ...others] of Map.groupBy(told, ({ call }) => call).values()) {
    const { verb, time, recipient, reason } = first!;
    const document = { type: verb, timestamp: time, recipient, others: others.length, reason };
    const to = others.length > 0 ? `${recipient} and ${others.length} more` : recipient;
    print(out, { at: Date.parse(time), verb, words: [to, reason], document });
  }
}

function toldBy({ event, time, recipient = '', msg, ignored, requestId = time }: LogLine) {
  const isAlone = event === 'refused' || event === 'repeated';
  if (!isAlone && ignored === undefined) return [];
  const verb = isAlone ? event : 'ignored';
  const reason = isAlone ? msg.replace(/^\w+ (?:<[^>]*> )?/, '') : `unknown members: ${ignored}`;
  return [{ verb, time, recipient, reason, call: `${requestId} ${verb} ${reason}` }];
}

/** A post to a webhook, and its answer. */
export function printPost(
  out: Output,
  { type, startedAt, duration, url, status, error }: PostedAttempt,
): void {
  const answer = status === null ? (error ?? '') : `${status} in ${duration} ms`;
  const document = { type: 'webhook', timestamp: iso(startedAt), event: type, url, status, error };
  print(out, { at: startedAt, verb: 'webhook', words: [type, answer, url], document });
}

type PostedAttempt = Pick<
  WebhookAttemptRecord,
  'type' | 'startedAt' | 'duration' | 'url' | 'status' | 'error'
>;

interface Line {
  at: number;
  verb: string;
  words: string[];
  /** The page of the mail. */
  url?: string;
  document: object;
}

/** On a terminal in colour, with local times; in a pipe plain, with fields separated by tabs. */
function print(out: Output, { at, verb, words, url, document }: Line): void {
  out.write(`${out.json ? JSON.stringify(document) : textOf(out, { at, verb, words, url })}\n`);
}

function textOf(out: Output, { at, verb, words, url }: Omit<Line, 'document'>): string {
  const texts = words.map(sanitize);
  if (!out.terminal) return [iso(at), verb, ...texts, ...(url === undefined ? [] : [url])].join('\t');
  const time = dim(new Date(at).toTimeString().slice(0, 'HH:MM:SS'.length));
  const line = [time, coloured(verb, verb.padEnd(10)), ...texts].filter((text) => text !== '').join('  ');
  const isFirst = verb === 'queued' || verb === 'scheduled';
  return isFirst ? `${line}\n${' '.repeat(22)}${dim(url!)}` : line;
}

function reasonIn({ bounce, diagnostic }: Record<string, unknown>): string {
  return String((bounce as { diagnostic?: string } | undefined)?.diagnostic ?? diagnostic ?? '');
}
