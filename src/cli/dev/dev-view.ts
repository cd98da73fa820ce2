/** What `postern dev` prints: how to use the server, and one line for each event of a mail. */
import { styleText } from 'node:util';
import { iso } from '../../base/clock.ts';
import type { EventRecord } from '../../db/events/read-events.ts';
import { testDomain } from '../../mail/test-route.ts';
import { coloured, dim, type Output, sanitize } from '../render/output.ts';

export interface DevServer {
  url: string;
  signIn: string;
  inbox: string;
  key: string;
  smtp: { host: string; port: number; user: string };
  domain: string;
  directory: string;
}

export function printStart(out: Output, server: DevServer): void {
  out.write(out.json ? `${JSON.stringify(server)}\n` : introduction(out, server));
}

function introduction(out: Output, server: DevServer): string {
  const { url, signIn, key, smtp, domain, directory } = server;
  const bold = (text: string) => (out.terminal ? styleText('bold', text) : text);
  const mail = { from: `Shop <shop@${domain}>`, to: 'ann@example.org', subject: 'Hello', text: 'It works.' };
  const body = JSON.stringify(mail);
  return `${bold('Postern for development: no mail leaves this machine.')} Ctrl-C stops it.

Inbox      ${signIn}
API        ${url}
Key        ${key}
SMTP       host ${smtp.host}, port ${smtp.port}, no encryption, user ${smtp.user}, password: the key
Senders    any address at ${domain}; add domains in the dashboard or with --domain
Data       ${directory}; --fresh discards it

${bold('curl')}
curl ${url}/api/public/email/send -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' -d '${body}'

${bold('Node')}
await fetch('${url}/api/public/email/send', {
  method: 'POST',
  headers: { Authorization: 'Bearer ${key}', 'Content-Type': 'application/json' },
  body: JSON.stringify(${body}),
});

${bold('Recipients')} that behave as they are named, at any domain: unknown@, full@, greylist@, deferred@, slow@, complain@.
They do at ${testDomain} with the test keys of a real server, too. Mail to all others is delivered to the inbox.

${bold('Mail')}
`;
}

/** On a terminal in colour, with local times; in a pipe plain, with fields separated by tabs. */
export function printEvent(out: Output, event: EventRecord, emails: string): void {
  if (event.email !== null) out.write(`${textOf(out, event, `${emails}/${event.email.id}`)}\n`);
}

function textOf(out: Output, { type, at, recipient, email, data }: EventRecord, url: string): string {
  const { subject } = email!;
  if (out.json) return JSON.stringify({ type, timestamp: iso(at), recipient, subject, url });
  const verb = type.replace(/^email\./, '');
  const why = verb === 'delivered' ? '' : reasonIn(data);
  const [to, about, reason] = [recipient ?? '', subject, why].map(sanitize) as [string, string, string];
  if (!out.terminal) return [iso(at), verb, to, about, reason, url].join('\t');
  const time = dim(new Date(at).toTimeString().slice(0, 'HH:MM:SS'.length));
  const line = [time, coloured(verb, verb.padEnd(10)), to, about, reason && dim(reason)];
  const isFirst = verb === 'queued' || verb === 'scheduled';
  return line.filter((one) => one !== '').join('  ') + (isFirst ? `\n${' '.repeat(22)}${dim(url)}` : '');
}

function reasonIn({ bounce, diagnostic }: Record<string, unknown>): string {
  return String((bounce as { diagnostic?: string } | undefined)?.diagnostic ?? diagnostic ?? '');
}
