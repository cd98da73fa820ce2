/**
 * `node scripts/postfix.ts`, as root: delivers to a real Postfix and lets a real OpenDKIM verify the signature.
 *
 * Sends some mails through Postern's HTTP API to a private Postfix on loopback (test/lab/programs/postfix.ts), the MX host of a fake
 * zone. Prints what Postfix answered, how TLS was used, what OpenDKIM says of the signature with the key from the same zone,
 * and whether the bytes in the Maildir are the bytes in Postern's database. A control mail, signed by Postern and changed by
 * one letter afterwards, must fail; otherwise OpenDKIM's result would prove nothing.
 *
 * Exits 0 if all of that is so, 1 if not, 2 if Postfix or OpenDKIM cannot be run; it then prints how to install them. Leaves
 * nothing behind, not even after Ctrl-C.
 */
import { fileURLToPath } from 'node:url';
import Table from 'cli-table3';
import { createTransport } from 'nodemailer';
import { readSources } from '../src/db/events/emails.ts';
import { type Dns, startDns } from '../test/lab/dns/dns.ts';
import { perform, type Stage } from '../test/lab/load/stage.ts';
import { takeApart } from '../test/lab/programs/maildir.ts';
import { mails } from '../test/lab/programs/mails.ts';
import { startOpenDkim } from '../test/lab/programs/opendkim.ts';
import { obstacle, type Postfix, startPostfix } from '../test/lab/programs/postfix.ts';
import { type Postern, startPostern } from '../test/lab/scenes/postern.ts';

interface World {
  dns: Dns;
  postfix: Postfix;
  postern: Postern;
}

async function setUp(stage: Stage): Promise<World> {
  const { directory } = stage;
  const zone = { 'there.invalid': { MX: ['10 mx1.invalid'] }, 'mx1.invalid': { A: ['127.0.0.2'] } };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const opendkim = await stage.start(startOpenDkim({ directory, dnsPort: dns.port }), (it) => it.stop());
  const starting = startPostfix({
    directory,
    mailboxes: [...Object.keys(mails), 'control'].map(addressOf),
    pemFile: fileURLToPath(new URL('../test/fixtures/mx.pem', import.meta.url)),
    settings: { smtpd_milters: opendkim.milter, milter_default_action: 'tempfail' },
  });
  const postfix = await stage.start(starting, (it) => it.stop());
  const settings = { POSTERN_LOG_LEVEL: 'warn' };
  const postern = await startPostern(stage, { dns, mtaPort: postfix.port, settings });
  return { dns, postfix, postern };
}

function addressOf(mail: string): string {
  return `${mail}@there.invalid`;
}

/** The result of one mail: its row of the table, its bytes, and its faults. */
interface Outcome {
  row: string[];
  source: Buffer;
  faults: string[];
}

async function deliver(mail: string, world: World): Promise<Outcome> {
  const { emailId } = await world.postern.send({ to: addressOf(mail), ...mails[mail] });
  const email = await world.postern.after(['queued', 'sending'], emailId);
  const { status, lastResponse, tls } = email.recipients[0]!;
  const reply = [lastResponse?.code, lastResponse?.enhanced, lastResponse?.text].join(' ');
  if (status !== 'delivered') throw new Error(`${mail}: ${status}, ${reply}`);
  const [source] = await readSources(world.postern.db, email.emailId);
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

/** Headers that Postfix and OpenDKIM add to a message. */
const traceHeader = /^(Return-Path|X-Original-To|Delivered-To|Received|Authentication-Results):/;

/** OpenDKIM's result in Authentication-Results, without comments: `dkim=pass header.d=…`. */
function dkimResult(trace: string[]): string {
  const header = trace.find((one) => one.startsWith('Authentication-Results:')) ?? '';
  return / (dkim=[^;]+)/.exec(header.replace(/ \([^)]*\)/g, ''))?.[1] ?? 'nothing';
}

/** Sends a signed mail again with one letter changed. OpenDKIM must notice. */
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

/** Returns the faults. */
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
  const faults = await perform('postfix', async (stage) => {
    const world = await setUp(stage);
    const wrong = await compare(world);
    return wrong.length > 0 ? [...wrong, `The log of Postfix:\n${await world.postfix.log()}`] : [];
  });
  console.log(faults.length === 0 ? 'All of it holds.' : `It does not hold:\n${faults.join('\n')}`);
  process.exit(faults.length === 0 ? 0 : 1);
}

await main();
