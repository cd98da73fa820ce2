/**
 * `node scripts/receivers.ts`: delivers four mails each to a real Postfix with OpenDKIM, Exim, OpenSMTPD, and a Postfix with
 * postgrey. Each must arrive over TLS with exactly the bytes that were sent and a DKIM signature that mailauth and OpenDKIM
 * verify. OpenSMTPD may get its mail in clear: Debian 12's fails every handshake (its issue 1171). Needs root. Exits 0 if so, 1
 * if not, 2 if a receiver cannot be run here. The packages of the mail servers conflict: install one, unpack the others:
 *
 *   apt-get install -y --no-install-recommends postfix postgrey opendkim
 *   apt-get download exim4-daemon-light exim4-base libidn12 opensmtpd; for p in *.deb; do dpkg -x $p unpacked; done
 *   node scripts/receivers.ts --packages unpacked [--only postfix|exim|opensmtpd|postgrey]… [--delay 20] [--json]
 *
 * `--delay`: seconds for which postgrey defers unknown senders; Postern's first retry comes after about 30 s.
 */
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { verifyDkim } from '#lab/dkim.ts';
import { type Dns, startDns, type Zone } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { progress, tableOf } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { endIf, readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { eximProgram, startExim } from '#lab/programs/exim.ts';
import { obstacleTo } from '#lab/programs/jail.ts';
import { takeApart } from '#lab/programs/maildir.ts';
import { mails } from '#lab/programs/mails.ts';
import { openSmtpdProgram, startOpenSmtpd } from '#lab/programs/opensmtpd.ts';
import { startGreylistingPostfix, startVerifyingPostfix } from '#lab/programs/postfix-receiver.ts';
import type { Receiver, ReceiverOptions } from '#lab/programs/receiver.ts';
import { type Postern, startPostern } from '#lab/scenes/postern.ts';
import { readSources } from '#mail/record/rows/emails.ts';

const args = readOptions('node scripts/receivers.ts [--only NAME]… [--packages DIR] [--delay S] [--json]', {
  only: { type: 'string', multiple: true, default: [] },
  packages: { type: 'string' },
  delay: { type: 'string', default: '20' },
  json: { type: 'boolean', default: false },
});
const packages = args.packages && resolve(args.packages);

interface Kind {
  name: string;
  programs: string[];
  start(options: ReceiverOptions, dnsPort: number): Promise<Receiver>;
  attempts: number;
  mustUseTls: boolean;
}

const postfixProgram = '/usr/sbin/postfix';

const allKinds: Kind[] = [
  {
    name: 'postfix',
    programs: [postfixProgram, '/usr/sbin/opendkim'],
    start: startVerifyingPostfix,
    attempts: 1,
    mustUseTls: true,
  },
  {
    name: 'exim',
    programs: [eximProgram],
    start: (options) => startExim(options),
    attempts: 1,
    mustUseTls: true,
  },
  {
    name: 'opensmtpd',
    programs: [openSmtpdProgram],
    start: (options) => startOpenSmtpd(options),
    attempts: 1,
    mustUseTls: false,
  },
  {
    name: 'postgrey',
    programs: [postfixProgram, '/usr/sbin/postgrey'],
    start: (options) => startGreylistingPostfix(options, Number(args.delay)),
    attempts: 2,
    mustUseTls: true,
  },
];
const kinds = allKinds.filter(({ name }) => args.only.length === 0 || args.only.includes(name));

interface Running {
  kind: Kind;
  domain: string;
  host: string;
  receiver: Receiver;
}

interface World {
  dns: Dns;
  postern: Postern;
  running: Running[];
}

async function setUp(stage: Stage): Promise<World> {
  const port = await freePort('127.0.0.2');
  const running: Running[] = [];
  const zone: Zone = {};
  const dns = await stage.start(startDns(), (it) => it.close());
  for (const [index, kind] of kinds.entries()) {
    const { name } = kind;
    const [domain, hostname, host] = [`${name}.invalid`, `mx.${name}.invalid`, `127.0.0.${index + 2}`];
    zone[domain] = { MX: [`10 ${hostname}`] };
    zone[hostname] = { A: [host] };
    const directory = join(stage.directory, name);
    await mkdir(directory);
    const pemFile = fileURLToPath(new URL('../test/fixtures/mx.pem', import.meta.url));
    const mailboxes = Object.keys(mails);
    const options = { directory, host, port, hostname, domain, mailboxes, pemFile, packages };
    const starting = kind.start(options, dns.port);
    const receiver = await stage.start(starting, (it) => it.stop());
    progress(`${receiver.version} at ${host}:${port}`);
    running.push({ kind, domain, host, receiver });
  }
  dns.set(zone);
  return { dns, postern: await startPostern(stage, { dns, mtaPort: port }), running };
}

/** The result of one mail. */
interface MailResult {
  mail: string;
  isDelivered: boolean;
  attempts: number;
  /** Protocol and cipher, or 'none'. */
  tls: string;
  sameBytes: boolean;
  passesDkim: boolean;
  seconds: number;
  faults: string[];
}

interface Row {
  receiver: string;
  version: string;
  mails: MailResult[];
}

const timeoutMs = 120_000;

const openDkimPasses = /^Authentication-Results: .*\bdkim=pass .*header\.d=sender\.invalid /;

async function deliver(mail: string, { kind, domain, receiver }: Running, world: World): Promise<MailResult> {
  const { postern, dns } = world;
  const { emailId } = await postern.send({ to: `${mail}@${domain}`, ...mails[mail] });
  const email = await postern.after(['queued', 'sending', 'deferred'], emailId, timeoutMs);
  const { status, attempts, lastResponse, tls, deliveredAt } = email.recipients[0]!;
  if (status !== 'delivered') throw new Error(`${mail}: ${status}, ${JSON.stringify(lastResponse)}`);
  const [source] = await readSources(postern.db, emailId);
  const { raw, trace, sameBytes } = takeApart(await receiver.received(mail), source!);
  const dkim = await verifyDkim(raw, dns);
  const passesDkim = dkim.some((one) => one.result === 'pass' && one.domain === 'sender.invalid');
  const checks: [boolean, string][] = [
    [attempts === kind.attempts, `${attempts} attempts instead of ${kind.attempts}`],
    [tls !== null || !kind.mustUseTls, 'no TLS'],
    [sameBytes, 'what the receiver keeps is not what was sent'],
    [passesDkim, `DKIM: ${JSON.stringify(dkim)}`],
    [
      kind.name !== 'postfix' || trace.some((one) => openDkimPasses.test(one)),
      `OpenDKIM: ${trace.join('\n')}`,
    ],
  ];
  return {
    mail,
    isDelivered: true,
    attempts,
    tls: tls ? `${tls.protocol} ${tls.cipher}` : 'none',
    sameBytes,
    passesDkim,
    seconds: (Date.parse(deliveredAt!) - Date.parse(email.createdAt)) / 1000,
    faults: checks.filter(([holds]) => !holds).map(([, fault]) => `${kind.name}, ${mail}: ${fault}`),
  };
}

const lost = {
  isDelivered: false,
  attempts: 0,
  tls: 'none',
  sameBytes: false,
  passesDkim: false,
  seconds: 0,
};

/** Sends all mails to one receiver at the same time. */
async function deliverAll(running: Running, world: World): Promise<Row> {
  const { kind, receiver } = running;
  const results = await Promise.all(
    Object.keys(mails).map((mail) =>
      deliver(mail, running, world).catch(
        (error): MailResult => ({ ...lost, mail, faults: [`${kind.name}, ${error.message}`] }),
      ),
    ),
  );
  progress(
    `${kind.name}: ${results.filter(({ isDelivered }) => isDelivered).length} of ${results.length} delivered`,
  );
  return { receiver: kind.name, version: receiver.version, mails: results };
}

function print(rows: Row[]): void {
  const head = ['receiver', 'sent', 'delivered', 'TLS', 'same bytes', 'DKIM pass', 'attempts', 'time'];
  const different = (values: (string | number)[]) => [...new Set(values)].join('\n');
  const shown = rows.map(({ version, mails: results }) => {
    const count = (holds: (one: MailResult) => boolean) => results.filter(holds).length;
    const slowest = Math.max(...results.map(({ seconds }) => seconds));
    return [
      version,
      results.length,
      count(({ isDelivered }) => isDelivered),
      different(results.map(({ tls }) => tls)),
      count(({ sameBytes }) => sameBytes),
      count(({ passesDkim }) => passesDkim),
      different(results.map(({ attempts }) => attempts)),
      `${slowest.toFixed(1)} s`,
    ];
  });
  console.log(tableOf(head, shown));
}

endIf(
  kinds.length === 0
    ? `${args.only.join(', ')}: no such receiver`
    : obstacleTo(
        kinds.flatMap(({ programs }) => programs),
        packages,
      ),
);
let rows: Row[] = [];
const faults = await runScript('receivers', async (stage) => {
  const world = await setUp(stage);
  rows = await Promise.all(world.running.map((one) => deliverAll(one, world)));
  const wrong = rows.flatMap((row) => row.mails.flatMap((one) => one.faults));
  for (const { kind, receiver } of world.running) {
    if (wrong.some((fault) => fault.startsWith(kind.name))) {
      wrong.push(`the log of ${kind.name}:\n${await receiver.log()}`);
    }
  }
  return wrong;
});
conclude({ faults, json: args.json && { rows }, print: () => rows.length > 0 && print(rows) });
