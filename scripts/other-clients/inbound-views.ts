/** Other people's programs that take posts of received mail: each is posted one mail, and tells what it made of it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freePort } from '#lab/load/ports.ts';
import type { Stage } from '#lab/load/stage.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import type { Postern } from '#lab/scenes/postern.ts';
import { receiveAt } from '#lab/scenes/receiving.ts';
import { until } from '#lab/until.ts';
import { addRoute } from '#mail/received/define-route.ts';
import { orgIdOf } from '../attacks/scene.ts';

interface InboundView {
  name: string;
  /** apt-get install … */
  packages: string;
  command: string[];
  isInstalled: boolean;
  format: string;
  /** The URL's part after the host; `user`: the part before it. */
  path: string;
  user?: string;
  /** For the program, with the secret that the webhook was made with. */
  settings(secret: string): object;
  /** The format has the reply without the quoted mail. */
  hasReply: boolean;
}

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const succeeds = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const python = '/usr/bin/python3';
const hasAnymail = succeeds(python, '-c', 'import anymail');

const anymail = (service: string, settings: (secret: string) => object, hasReply: boolean): InboundView => ({
  name: `Anymail, ${service}`,
  packages: 'python3-django-anymail',
  command: [python, file('receive_by_anymail.py')],
  isInstalled: hasAnymail,
  format: service.toLowerCase(),
  path: `/anymail/${service.toLowerCase()}/inbound/`,
  settings,
  hasReply,
});

const password = 'a password';

export const inboundViews: InboundView[] = [
  { ...anymail('Postmark', () => ({ WEBHOOK_SECRET: 'user:secret' }), true), user: 'user:secret' },
  anymail('SendGrid', () => ({}), false),
  anymail('Mailgun', (secret) => ({ MAILGUN_WEBHOOK_SIGNING_KEY: secret }), true),
  {
    ...anymail('Mailgun', (secret) => ({ MAILGUN_WEBHOOK_SIGNING_KEY: secret }), false),
    name: 'Anymail, Mailgun (MIME)',
    path: '/anymail/mailgun/inbound_mime/',
  },
  {
    name: 'Rails, Action Mailbox',
    packages: 'ruby-railties ruby-actionmailbox ruby-sqlite3 ruby-webrick',
    command: ['ruby', file('receive_by_rails.rb')],
    isInstalled: succeeds(
      'ruby',
      '-e',
      `${['rails', 'action_mailbox/engine', 'sqlite3', 'webrick'].map((name) => `require '${name}';`).join('')}`,
    ),
    format: 'raw',
    path: '/rails/action_mailbox/relay/inbound_emails',
    user: `actionmailbox:${encodeURIComponent(password)}`,
    settings: () => ({ password }),
    hasReply: false,
  },
];

const png = Buffer.from('89504e470d0a1a0a00ff', 'hex');
const mail = (to: string) =>
  Buffer.from(
    [
      'From: "Doe, Jane" <jane@there.invalid>',
      `To: Shop <${to}>`,
      'Subject: =?utf-8?q?Re=3A_Gr=C3=BC=C3=9Fe?=',
      'Message-ID: <answer@there.invalid>',
      'X-Order: 4711',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=m',
      '',
      '--m',
      'Content-Type: multipart/alternative; boundary=a',
      '',
      '--a',
      'Content-Type: text/plain; charset=iso-8859-1',
      'Content-Transfer-Encoding: 8bit',
      '',
      'Gerne f\xfcr morgen.',
      '',
      'On Fri, 27 Nov 2026 at 10:00, Shop <orders@x.invalid> wrote:',
      '> When?',
      '--a',
      'Content-Type: text/html; charset=utf-8',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      '<p>Gerne f=C3=BCr morgen.</p>',
      '--a--',
      '--m',
      'Content-Type: image/png; name=logo.png',
      'Content-Disposition: attachment; filename=logo.png',
      'Content-Transfer-Encoding: base64',
      '',
      png.toString('base64'),
      '--m--',
      '',
    ].join('\r\n'),
    'latin1',
  );

/** What is wrong with what a program got; and a row for the table. */
export async function tryView(
  stage: Stage,
  { url, db, key }: Postern,
  inboundPort: number,
  view: InboundView,
): Promise<{ row: string[]; faults: string[] }> {
  const port = await freePort('127.0.0.1');
  const hook = await fetch(`${url}/api/public/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      url: `http://${view.user ? `${view.user}@` : ''}127.0.0.1:${port}${view.path}`,
      format: view.format,
      events: ['email.received'],
    }),
  });
  const { webhook, secret, ...rest } = (await hook.json()) as { webhook?: { id: string }; secret?: string };
  if (!webhook) throw new Error(`${view.name}: ${JSON.stringify(rest)}`);
  const told: string[] = [];
  const [program, ...args] = view.command as [string, ...string[]];
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  await stage.start(Promise.resolve(child), async (it: ChildProcess) => void it.kill('SIGTERM'));
  let errors = '';
  child.stderr.on('data', (text) => {
    errors += text;
  });
  createInterface({ input: child.stdout }).on('line', (line) => told.push(line));
  child.stdin.write(`${JSON.stringify({ port, settings: view.settings(secret ?? '') })}\n`);
  await until(() => told.length > 0, { timeout: 60_000, what: () => `${view.name} to start: ${errors}` });
  const orgId = await orgIdOf(db, key);
  const to = `orders+${port}@x.invalid`;
  if (!(await db('domains').where({ name: 'x.invalid' }).first('id')))
    await receiveAt(db, orgId, 'x.invalid');
  await addRoute(db, orgId, { pattern: to, action: 'webhook', webhookId: webhook.id }, Date.now());
  // A new route holds within a second.
  await until(() => send(inboundPort, to).then(() => true));
  await until(() => told.length > 1, {
    timeout: 30_000,
    what: () => `${view.name} to be posted to: ${errors.slice(-2000)}`,
  });
  const got = JSON.parse(told[1]!);
  const text = String(got.text).replace(/\r?\n/g, '\n');
  const checks: [boolean, string][] = [
    [/"?Doe, Jane"? <jane@there\.invalid>/.test(got.from), `from is ${got.from}`],
    [String(got.to).includes(to), `to is ${got.to}`],
    [got.subject === 'Re: Grüße', `the subject is ${got.subject}`],
    [text.startsWith('Gerne für morgen.\n\nOn Fri') && text.includes('> When?'), `the text is ${text}`],
    [String(got.html).trim() === '<p>Gerne für morgen.</p>', `the HTML is ${got.html}`],
    [
      JSON.stringify(got.files) === JSON.stringify([['logo.png', 'image/png', png.toString('hex')]]),
      `the files are ${JSON.stringify(got.files)}`,
    ],
    [got.header === '4711', `X-Order is ${got.header}`],
    [got.sender === 'bounces@there.invalid', `the envelope's sender is ${got.sender}`],
    [got.recipient === to, `the envelope's recipient is ${got.recipient}`],
    [!view.hasReply || got.reply === 'Gerne für morgen.', `the reply is ${got.reply}`],
  ];
  const faults = checks.flatMap(([holds, fault]) => (holds ? [] : [`${view.name}: ${fault}`]));
  return { row: [view.name, faults.length === 0 ? 'ok' : 'no', told[1]!.slice(0, 200)], faults };
}

async function send(port: number, to: string): Promise<void> {
  const talk = await connectSmtp(port);
  await talk.says('EHLO there.invalid\r\n', '250');
  await talk.begins('<bounces@there.invalid>', `<${to}>`);
  talk.write(mail(to));
  await talk.says('.\r\n', '250');
  talk.close();
}
