/**
 * `node scripts/postfix.ts`, as root: delivery into a real Postfix, and a real OpenDKIM's word about the signature.
 *
 * Three mails go through Postern's HTTP API to a private Postfix on loopback (peers/postfix.ts), the MX of a fake
 * zone. It prints what Postfix answered, how TLS was used, what OpenDKIM says of the signature with the key that it
 * found in the same zone, and whether the bytes in the Maildir are the bytes in Postern's database. A control mail,
 * signed by Postern and changed on its way by one letter, must fail: else OpenDKIM's word would be worth nothing.
 *
 * Exits 0 when all of that holds, 1 when something does not, 2 where Postfix or OpenDKIM cannot be run; the way to
 * install them is said then. Leaves nothing behind, after Ctrl-C neither.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Table from 'cli-table3';
import { createTransport } from 'nodemailer';
import { orAborted } from '../src/abort.ts';
import { readSources } from '../src/db/emails.ts';
import { type Db, openDatabase } from '../src/db/open.ts';
import { start } from '../src/main.ts';
import type { telemetry } from '../src/status/telemetry.ts';
import { type Dns, startDns } from '../test/helpers/dns.ts';
import { until } from '../test/helpers/until.ts';
import { createTenant, testConfig } from '../test/helpers/world.ts';
import { obstacle, type Postfix, startOpenDkim, startPostfix } from './peers/postfix.ts';

type Email = ReturnType<typeof telemetry>;

const everyByte = Buffer.from(Array.from({ length: 64 * 1024 }, (_, at) => (at * 31) % 256));

/** Dots, and a line as long as RFC 5322 allows, in the body, and where no encoding may hide them: within a message. */
const awkward = ['.', '..', '.hidden', 'x'.repeat(998), '. .', '', '.'].join('\r\n');

/** By the local part of the recipient. */
const mails: Record<string, object> = {
  plain: { subject: 'Plain text', text: 'Hello,\n\nall of this is plain.\n' },
  rich: {
    subject: 'Grüße aus Köln, 你好, 📬',
    html: '<p>Schöne <b>Grüße</b> &amp; 你好</p>',
    text: 'Schöne Grüße und 你好',
    attachments: [{ filename: 'Bücher.bin', content: everyByte.toString('base64') }],
  },
  dots: {
    subject: 'Dots and long lines',
    text: `${awkward}\r\n${'long '.repeat(1000)}\r\n.`,
    attachments: [
      {
        filename: 'forwarded.eml',
        contentType: 'message/rfc822',
        content: Buffer.from(`From: a@sender.invalid\r\nSubject: within\r\n\r\n${awkward}\r\n`).toString(
          'base64',
        ),
      },
    ],
  },
};

interface World {
  dns: Dns;
  postfix: Postfix;
  db: Db;
  url: string;
  key: string;
  interrupted: AbortSignal;
}

/** Starts everything; what ends it goes to `stops`. Ctrl-C is heeded between the steps. */
async function setUp(stops: (() => Promise<unknown>)[], interrupted: AbortSignal): Promise<World> {
  const started = <T>(it: T, stop: () => Promise<unknown>): T => {
    stops.push(stop);
    interrupted.throwIfAborted();
    return it;
  };
  const directory = await mkdtemp(join(tmpdir(), 'postern-postfix-'));
  started(directory, () => rm(directory, { recursive: true, force: true }));
  await chmod(directory, 0o755);
  const dns = await startDns({
    'there.invalid': { MX: ['10 mx1.invalid'] },
    'mx1.invalid': { A: ['127.0.0.2'] },
  });
  started(dns, () => dns.close());
  const opendkim = await startOpenDkim({ directory, dnsPort: dns.port });
  started(opendkim, () => opendkim.stop());
  const postfix = await startPostfix({
    directory,
    mailboxes: [...Object.keys(mails), 'control'].map(addressOf),
    pemFile: fileURLToPath(new URL('../test/fixtures/mx.pem', import.meta.url)),
    settings: { smtpd_milters: opendkim.milter, milter_default_action: 'tempfail' },
  });
  started(postfix, () => postfix.stop());
  const config = testConfig(
    { dataDir: join(directory, 'postern'), databaseUrl: null, dns, mtaPort: postfix.port },
    { POSTERN_LOG_LEVEL: 'warn' },
  );
  const postern = await start(config);
  started(postern, () => postern.stop());
  const db = await openDatabase(config);
  started(db, () => db.destroy());
  const key = await createTenant(db, config, dns);
  return { dns, postfix, db, url: postern.url, key, interrupted };
}

function addressOf(mail: string): string {
  return `${mail}@there.invalid`;
}

/** A mail by the API, to its end. */
async function send(mail: string, { url, key, interrupted }: World): Promise<Email> {
  const call = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}/api/public/email/${path}`, {
      headers,
      signal: interrupted,
      ...init,
    });
    const body = (await response.json()) as Email;
    if (!response.ok) throw new Error(`${mail}: HTTP ${response.status}, ${JSON.stringify(body)}`);
    return body;
  };
  const fields = { from: 'Shop <shop@sender.invalid>', to: addressOf(mail), ...mails[mail] };
  const { emailId } = await call('send', { method: 'POST', body: JSON.stringify(fields) });
  let email: Email | undefined;
  await until(
    async () => {
      email = await call(emailId);
      return !['queued', 'sending'].includes(email.status);
    },
    { what: () => `${mail}: the end of the first attempt; last: ${JSON.stringify(email)}` },
  );
  return email!;
}

/** What is known of one mail at the end: its row of the table, its bytes, what does not hold. */
interface Outcome {
  row: string[];
  source: Buffer;
  faults: string[];
}

async function deliver(mail: string, world: World): Promise<Outcome> {
  const email = await send(mail, world);
  const { status, lastResponse, tls } = email.recipients[0]!;
  const reply = [lastResponse?.code, lastResponse?.enhanced, lastResponse?.text].join(' ');
  if (status !== 'delivered') throw new Error(`${mail}: ${status}, ${reply}`);
  const [source] = await readSources(world.db, email.emailId);
  const [file] = await world.postfix.received(addressOf(mail));
  const stored = takeApart(file!, source!);
  const queueId = /queued as (\w+)/.exec(reply)?.[1] ?? '';
  const dkim = dkimResult(stored.trace);
  const selector = /header\.s=(\S+)/.exec(dkim)?.[1];
  const keyName = `${selector}._domainkey.sender.invalid`;
  const received = stored.trace.find((header) => header.startsWith('Received:')) ?? '';
  const checks: [boolean, string][] = [
    [received.includes(`id ${queueId} `), `Postfix answered "${reply}" and wrote ${received}`],
    [tls !== null && received.includes(`${tls.protocol} with cipher ${tls.cipher} `), `TLS: ${received}`],
    [/^dkim=pass .*header\.d=sender\.invalid /.test(dkim), `OpenDKIM says ${dkim}`],
    [world.dns.queries.some(({ name }) => name === keyName), `nobody asked DNS for ${keyName}`],
    [stored.sameBytes, 'what Postfix stored is not what Postern sent'],
    [stored.trace.every((header) => traceHeader.test(header)), `headers added: ${stored.trace.join('\n')}`],
  ];
  const faults = checks.filter(([holds]) => !holds).map(([, fault]) => `${mail}: ${fault}`);
  const tlsUsed = tls ? `${tls.protocol} ${tls.cipher}` : 'none';
  const row = [mail, reply, tlsUsed, queueId, dkim, stored.sameBytes ? 'yes' : 'NO'];
  return { row, source: source!, faults };
}

/** What Postfix and OpenDKIM put on top of a message. */
const traceHeader = /^(Return-Path|X-Original-To|Delivered-To|Received|Authentication-Results):/;

/**
 * A file of the Maildir, where lines end by LF as everywhere on Unix: the headers put on top, unfolded, and whether
 * all below is the message.
 */
function takeApart(file: Buffer, source: Buffer): { trace: string[]; sameBytes: boolean } {
  const stored = Buffer.from(file.toString('latin1').replaceAll('\n', '\r\n'), 'latin1');
  const start = Math.max(stored.length - source.length, 0);
  const top = stored.subarray(0, start).toString();
  const trace = top
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .slice(0, -1);
  return { trace, sameBytes: stored.subarray(start).equals(source) };
}

/** OpenDKIM's word in the Authentication-Results, without its comments: `dkim=pass header.d=…`. */
function dkimResult(trace: string[]): string {
  const header = trace.find((one) => one.startsWith('Authentication-Results:')) ?? '';
  return / (dkim=[^;]+)/.exec(header.replace(/ \([^)]*\)/g, ''))?.[1] ?? 'nothing';
}

/** A signed mail once more, with one letter changed on its way. OpenDKIM must notice. */
async function control(source: Buffer, { postfix }: World): Promise<{ dkim: string; faults: string[] }> {
  const changed = Buffer.from(source.toString('latin1').replace('plain.', 'plane.'), 'latin1');
  const { host, port } = postfix;
  const client = createTransport({ host, port, tls: { rejectUnauthorized: false } });
  const to = addressOf('control');
  await client.sendMail({ envelope: { from: 'control@sender.invalid', to }, raw: changed });
  const [file] = await postfix.received(to);
  const dkim = dkimResult(takeApart(file!, changed).trace);
  return { dkim, faults: dkim.startsWith('dkim=fail ') ? [] : [`control: OpenDKIM says ${dkim}`] };
}

/** Returns what does not hold. */
async function compare(world: World): Promise<string[]> {
  const outcomes: Outcome[] = [];
  for (const mail of Object.keys(mails)) outcomes.push(await deliver(mail, world));
  const table = new Table({
    head: ['mail', "Postfix's reply", 'TLS', 'queue id', 'OpenDKIM', 'same bytes'],
    colWidths: [7, 25, 24, 13, 45, 7],
    wordWrap: true,
    style: { head: [], border: [] },
  });
  table.push(...outcomes.map(({ row }) => row));
  console.log(table.toString());
  const { dkim, faults } = await control(outcomes[0]!.source, world);
  console.log(`control, the first mail with one letter changed: ${dkim}`);
  return [...outcomes.flatMap((outcome) => outcome.faults), ...faults];
}

async function main(): Promise<void> {
  const why = obstacle();
  if (why) {
    console.error(why);
    process.exit(2);
  }
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => interrupted.abort(new Error(`${signal}: stopped`)));
  }
  const stops: (() => Promise<unknown>)[] = [];
  let faults: string[];
  try {
    const world = await setUp(stops, interrupted.signal);
    faults = await orAborted(compare(world), interrupted.signal);
    if (faults.length > 0) faults.push(`The log of Postfix:\n${await world.postfix.log()}`);
  } catch (error) {
    faults = [(error as Error).message];
  }
  for (const stop of stops.reverse()) {
    await stop().catch((error) => faults.push(`while stopping: ${error.message}`));
  }
  console.log(faults.length === 0 ? 'All of it holds.' : `It does not hold:\n${faults.join('\n')}`);
  process.exit(faults.length === 0 ? 0 : 1);
}

await main();
