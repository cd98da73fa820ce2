/**
 * `node scripts/other-clients.ts`: sends mail with Debian's Django Anymail and Symfony Mailer by the APIs of Postmark, SendGrid and
 * Mailgun: an email with all that they can write, one to a suppressed address, one with a wrong key, and one from a domain that is
 * not ours. Shows what each client was told, and what arrived. Then posts a received mail to Anymail's inbound views and to Rails'
 * Action Mailbox, and shows what they made of it. Installs nothing; says what is missing:
 *
 *   apt-get install -y --no-install-recommends python3-django-anymail php-cli php-curl php-symfony-http-client \
 *     php-symfony-{mailgun,postmark,sendgrid}-mailer ruby-{railties,actionmailbox,sqlite3,webrick}
 *
 * Exits 0 if all is right, 1 if not, 2 if no client is installed.
 */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { createServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import PostalMime from 'postal-mime';
import { verifyDkim } from '#lab/dkim.ts';
import { type Dns, startDns } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { tableOf } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { runScript, type Stage } from '#lab/load/stage.ts';
import { type Mx, startMx } from '#lab/mx/mx.ts';
import { type Postern, startPostern } from '#lab/scenes/postern.ts';
import { until } from '#lab/until.ts';
import { inboundViews, tryView } from './other-clients/inbound-views.ts';

interface Host {
  url: string;
  /** With a certificate: Symfony always speaks HTTPS. */
  tlsHost: string;
}

interface Client {
  name: string;
  command: string[];
  isInstalled: boolean;
  job(host: Host, key: string): object;
}

const file = (name: string) => fileURLToPath(new URL(`other-clients/${name}`, import.meta.url));
const succeeds = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const python = '/usr/bin/python3';
const hasAnymail = succeeds(python, '-c', 'import anymail');
const bridges = '/usr/share/php/Symfony/Component/Mailer/Bridge';

function anymail(service: string, settings: (host: Host, key: string) => object): Client {
  return {
    name: `Anymail, ${service}`,
    command: [python, file('send_by_anymail.py')],
    isInstalled: hasAnymail,
    job: (host, key) => ({
      backend: `anymail.backends.${service.toLowerCase()}.EmailBackend`,
      settings: settings(host, key),
    }),
  };
}

function symfony(scheme: string, bridge: string): Client {
  const test = `require '${bridges}/${bridge}/autoload.php'; require '${bridges}/../../HttpClient/autoload.php';`;
  const domain = bridge === 'Mailgun' ? ':sender.invalid' : '';
  return {
    name: `Symfony, ${scheme}`,
    command: ['php', file('send-by-symfony.php')],
    isInstalled: succeeds('php', '-r', test),
    job: ({ tlsHost }, key) => ({ bridge, dsn: `${scheme}://${key}${domain}@${tlsHost}` }),
  };
}

const clients: Client[] = [
  anymail('Postmark', ({ url }, key) => ({ POSTMARK_SERVER_TOKEN: key, POSTMARK_API_URL: url })),
  anymail('SendGrid', ({ url }, key) => ({ SENDGRID_API_KEY: key, SENDGRID_API_URL: `${url}/v3/` })),
  anymail('Mailgun', ({ url }, key) => ({
    MAILGUN_API_KEY: key,
    MAILGUN_API_URL: `${url}/v3`,
    MAILGUN_SENDER_DOMAIN: 'sender.invalid',
  })),
  symfony('postmark+api', 'Postmark'),
  symfony('sendgrid+api', 'Sendgrid'),
  symfony('mailgun+api', 'Mailgun'),
  symfony('mailgun+https', 'Mailgun'),
];

const simple = {
  from: 'app@sender.invalid',
  to: ['ann@there.invalid'],
  cc: [] as string[],
  bcc: [] as string[],
  replyTo: [] as string[],
  subject: 'Hi',
  text: 'Hi',
  html: '',
  headers: {},
  metadata: {},
  tag: 'welcome',
};

const full = {
  ...simple,
  from: '"Acme, Inc." <app@sender.invalid>',
  to: ['Zoë Bee <ann@there.invalid>', 'bob@there.invalid'],
  cc: ['"C, D" <cleo@there.invalid>'],
  bcc: ['dora@there.invalid'],
  replyTo: ['Help <help@sender.invalid>'],
  subject: 'Grüße',
  html: '<p>Grüße <img src="cid:logo.png"></p>',
  headers: { 'X-Order': '7' },
  metadata: { plan: 'pro' },
};

const calls: { name: string; mail: typeof simple; key?: string; isRefused: boolean | 'either' }[] = [
  { name: 'all fields', mail: full, isRefused: false },
  // Postmark refuses it, SendGrid drops it.
  { name: 'suppressed', mail: { ...simple, to: ['gone@there.invalid'] }, isRefused: 'either' },
  { name: 'wrong key', mail: simple, key: 'em_not_a_key', isRefused: true },
  { name: 'other domain', mail: { ...simple, from: 'app@other.invalid' }, isRefused: true },
];

async function run({ command }: Client, job: object): Promise<{ ok: boolean; said: string }> {
  const [program, ...args] = command as [string, ...string[]];
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(JSON.stringify(job));
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)]);
  try {
    return JSON.parse(out);
  } catch {
    return { ok: false, said: `no outcome: ${out} ${error}`.slice(0, 500) };
  }
}

/** What is wrong with the mail that came for one who is in no header. */
async function faultsOf(mx: Mx, dns: Dns, { db }: Postern): Promise<string[]> {
  const { raw } = await until(() => mx.messages.find(({ to }) => to[0] === 'dora@there.invalid'));
  const [verdict] = await verifyDkim(raw, dns);
  const mail = await PostalMime.parse(raw);
  const { tags } = await db('emails').orderBy('id', 'desc').first('tags');
  const { plan, tag } = JSON.parse(tags);
  const image = mail.attachments.find(({ mimeType }) => mimeType === 'image/png');
  const terms = mail.attachments.find(({ mimeType }) => mimeType === 'text/plain');
  const checks: [boolean, string][] = [
    [verdict?.result === 'pass', `DKIM: ${verdict?.result}`],
    [mail.from!.name === 'Acme, Inc.' && mail.subject === full.subject, 'from or subject differs'],
    [mail.to![0]!.name === 'Zoë Bee' && mail.to!.length === 2, 'to differs'],
    [mail.cc?.[0]?.name === 'C, D', 'cc differs'],
    [mail.replyTo?.[0]?.address === 'help@sender.invalid', 'reply-to differs'],
    [mail.headers.some(({ key, value }) => key === 'x-order' && value === '7'), 'the header is missing'],
    [
      mail.text?.trim() === full.text && /Grüße <img src="cid:[^"]+">/.test(mail.html ?? ''),
      'a body differs',
    ],
    [mail.html?.includes(`cid:${image?.contentId?.slice(1, -1)}"`) === true, 'the image is not shown'],
    [terms?.filename === 'terms of use.txt' && terms.disposition === 'attachment', 'the file differs'],
    [!raw.toString('latin1').includes('dora@'), 'bcc is in a header'],
    [plan === 'pro' && tag === 'welcome', `tag or metadata differ: ${tags}`],
  ];
  return checks.flatMap(([holds, fault]) => (holds ? [] : [fault]));
}

async function startTls(stage: Stage, url: string): Promise<string> {
  const pem = readFileSync(new URL('../test/fixtures/mx.pem', import.meta.url));
  const { hostname, port } = new URL(url);
  const server = createServer({ cert: pem, key: pem }, (socket) => {
    const plain = connect(Number(port), hostname);
    for (const one of [socket, plain]) one.on('error', () => {});
    socket.pipe(plain).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await stage.start(Promise.resolve(server), async (it) => void it.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function play(stage: Stage): Promise<string[]> {
  const mx = await stage.start(startMx({ host: '127.0.0.2' }), (it) => it.close());
  const zone = {
    'there.invalid': { MX: ['10 mx1.invalid'], TXT: ['v=spf1 ip4:127.0.0.1 -all'] },
    'mx1.invalid': { A: [mx.host] },
  };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const inboundPort = await freePort('127.0.0.1');
  const settings = {
    POSTERN_LOG_LEVEL: 'error',
    POSTERN_INBOUND_PORT: String(inboundPort),
    POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const postern = await startPostern(stage, { dns, mtaPort: mx.port, settings });
  const { url, key } = postern;
  const host = { url, tlsHost: await startTls(stage, url) };
  await fetch(`${url}/api/public/suppressions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ address: 'gone@there.invalid' }),
  });
  const rows: string[][] = [];
  const all: string[] = [];
  for (const client of clients.filter(({ isInstalled }) => isInstalled)) {
    const cells: string[] = [];
    for (const call of calls) {
      mx.messages.length = 0;
      const { ok, said } = await run(client, { ...client.job(host, call.key ?? key), mail: call.mail });
      const faults = call.isRefused === ok ? [ok ? 'was taken' : `was refused: ${said}`] : [];
      if (call.mail === full && ok) faults.push(...(await faultsOf(mx, dns, postern)));
      all.push(...faults.map((fault) => `${client.name}, ${call.name}: ${fault}`));
      cells.push(`${ok ? 'ok' : 'no'}: ${said.replace(/\s+/g, ' ').slice(0, 200)}`);
    }
    rows.push([client.name, ...cells]);
  }
  console.log(tableOf(['client', ...calls.map(({ name }) => name)], rows, [24, 24, 40, 40, 40]));
  return [...all, ...(await playViews(stage, postern, inboundPort))];
}

/** Mail that comes in, as other programs take it. */
async function playViews(stage: Stage, postern: Postern, port: number): Promise<string[]> {
  const tried = [];
  for (const view of inboundViews.filter(({ isInstalled }) => isInstalled))
    tried.push(await tryView(stage, postern, port, view));
  console.log(
    tableOf(
      ['inbound view', '', 'got'],
      tried.map(({ row }) => row),
      [24, 6, 100],
    ),
  );
  return tried.flatMap(({ faults }) => faults);
}

const programs = [...clients, ...inboundViews];
const missing = programs.filter(({ isInstalled }) => !isInstalled).map(({ name }) => name);
if (missing.length > 0) console.error(`not installed, left out: ${missing.join('; ')}`);
if (missing.length === programs.length) process.exit(2);
const faults = await runScript('other-clients', play);
conclude({ faults });
