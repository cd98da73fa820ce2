/**
 * `node scripts/inbound-senders.ts [--packages DIR] [--only postfix|exim|opensmtpd]… [--json]`: real mail servers send signed mails
 * of several kinds to a route. Each must be kept with the bytes that were submitted, under the fields of the server and ours, and
 * pass SPF, DKIM and DMARC. Needs root; the packages are those of scripts/receivers.ts. Exits 0 if so, 1 if not, 2 if none of the
 * servers is there.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startDns } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { progress, tableOf } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { endIf, runScript, type Stage } from '#lab/load/stage.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { obstacleTo } from '#lab/programs/jail.ts';
import { chosenServers, readServerOptions } from '#lab/programs/mail-servers.ts';
import { startSendingExim, startSendingOpenSmtpd, startSendingPostfix } from '#lab/programs/senders.ts';
import { type Postern, startPostern } from '#lab/scenes/postern.ts';
import { receiveAt } from '#lab/scenes/receiving.ts';
import { until } from '#lab/until.ts';
import { addRoute } from '#mail/received/define-route.ts';
import { listReceived, rawOf } from '#mail/received/rows/received-mails.ts';
import { orgIdOf } from './attacks/scene.ts';
import { publicKey, signatureOf } from './verdicts/sign.ts';

const { only, packages, json } = readServerOptions('scripts/inbound-senders.ts');
const wanted = chosenServers(
  { postfix: startSendingPostfix, exim: startSendingExim, opensmtpd: startSendingOpenSmtpd },
  only,
);
const present = wanted.filter(({ program }) => obstacleTo([program], packages) === null);

const image = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9\r\n';

/** The header's own fields, and the body, in bytes as Latin-1. */
const mails: Record<string, { fields: string[]; body: string }> = {
  plain: { fields: [], body: 'Hello\r\n.\r\n..two dots\r\n\r\nthe end  \r\n' },
  'eight bits': {
    fields: [
      'MIME-Version: 1.0',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Transfer-Encoding: 8bit',
    ],
    body: Buffer.from('Grüße aus Köln\r\n').toString('latin1'),
  },
  'long lines': { fields: [], body: `${'x'.repeat(990)}\r\n`.repeat(30) },
  'a folded header': { fields: ['X-Long: a\r\n\tb\r\n  c', 'X-Empty:'], body: 'Hello\r\n' },
  attachments: {
    fields: ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=b'],
    body: `--b\r\n\r\nSee\r\n--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n${image.repeat(3000)}--b--\r\n`,
  },
};

interface World {
  postern: Postern;
  orgId: string;
  port: number;
}

async function setUp(stage: Stage): Promise<World> {
  const zone = {
    'there.invalid': { TXT: ['v=spf1 ip4:127.0.0.0/8 -all'] },
    '_dmarc.there.invalid': { TXT: ['v=DMARC1; p=reject; aspf=s; adkim=s'] },
    'rsa._domainkey.there.invalid': { TXT: [`v=DKIM1; p=${publicKey('rsa')}`] },
  };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const port = await freePort('127.0.0.1');
  const settings = { POSTERN_INBOUND_PORT: String(port), POSTERN_LOG_LEVEL: 'error' };
  const postern = await startPostern(stage, { dns, mtaPort: port, settings });
  const orgId = await orgIdOf(postern.db, postern.key);
  await receiveAt(postern.db, orgId, 'x.invalid');
  await addRoute(postern.db, orgId, { pattern: 'x.invalid', action: 'store', dmarc: 'reject' }, Date.now());
  return { postern, orgId, port };
}

interface Row {
  sender: string;
  mail: string;
  tls: string;
  sameBytes: boolean;
  verdicts: string;
}

async function sendAll(
  kind: (typeof wanted)[number],
  index: number,
  stage: Stage,
  world: World,
): Promise<Row[]> {
  const directory = join(stage.directory, kind.name);
  await mkdir(directory, { mode: 0o755 });
  const host = `127.0.0.${index + 2}`;
  const options = {
    directory,
    host,
    port: await freePort(host),
    pemFile: fileURLToPath(new URL('../test/fixtures/mx.pem', import.meta.url)),
    packages,
    routes: new Map([['x.invalid', '127.0.0.1']]),
    mxPort: world.port,
  };
  const sender = await stage.start(kind.start(options), (it) => it.stop());
  progress(`${sender.version} at ${host}:${options.port}`);
  const talk = await connectSmtp(options.port, { host });
  await talk.says('EHLO client.invalid\r\n', '250');
  const sent: { name: string; to: string; bytes: Buffer }[] = [];
  for (const [number, [name, { fields, body }]] of Object.entries(mails).entries()) {
    const to = `${kind.name}${number}@x.invalid`;
    const all = [
      'From: Ann <ann@there.invalid>',
      `To: ${to}`,
      `Subject: ${name}`,
      'Date: Sat, 28 Nov 2026 10:00:00 +0000',
      `Message-ID: <${number}.${kind.name}@there.invalid>`,
      ...fields,
    ];
    const signature = signatureOf(
      { fields: all, body },
      { c: 'simple/simple', h: 'from:to:subject:date:message-id' },
      'there.invalid',
    );
    const bytes = Buffer.from(`${[signature, ...all].join('\r\n')}\r\n\r\n${body}`, 'latin1');
    await talk.begins('<ann@there.invalid>', `<${to}>`);
    talk.write(Buffer.from(bytes.toString('latin1').replace(/^\./gm, '..'), 'latin1'));
    await talk.says('.\r\n', '250');
    sent.push({ name, to, bytes });
  }
  talk.close();
  const rows: Row[] = [];
  for (const { name, to, bytes } of sent) {
    const row = await arrived(world, to, bytes).catch(async (error) => {
      progress(`${(error as Error).message}\n${(await sender.log()).slice(-3000)}`);
      return { tls: '-', sameBytes: false, verdicts: 'it did not arrive' };
    });
    rows.push({ sender: sender.version, mail: name, ...row });
  }
  return rows;
}

async function arrived({ postern, orgId }: World, to: string, bytes: Buffer) {
  const mail = await until(
    async () =>
      (await listReceived(postern.db, orgId, { limit: 100 })).find(({ recipients }) => recipients[0] === to),
    { timeout: 30_000, what: `a mail for ${to}` },
  );
  const raw = (await rawOf(postern.db, orgId, mail.id))!;
  const { verdicts, tls } = mail.summary;
  const { spf, dkim, dmarc } = verdicts;
  return {
    tls: tls ? `${tls.protocol} ${tls.cipher}` : 'none',
    sameBytes: raw.subarray(-bytes.length).equals(bytes),
    verdicts: `spf=${spf.result} dkim=${dkim.map(({ result }) => result).join()} dmarc=${dmarc.result}`,
  };
}

for (const { name } of wanted.filter((one) => !present.includes(one)))
  console.error(`left out, not there: ${name}`);
endIf(present.length === 0 ? 'no mail server is there; see the header of scripts/receivers.ts' : null);
const rows: Row[] = [];
const faults = await runScript('inbound-senders', async (stage) => {
  const world = await setUp(stage);
  for (const [index, kind] of present.entries()) rows.push(...(await sendAll(kind, index, stage, world)));
  return rows.flatMap(({ sender, mail, sameBytes, verdicts }) =>
    sameBytes && verdicts === 'spf=pass dkim=pass dmarc=pass'
      ? []
      : [`${sender}, ${mail}: ${verdicts}, ${sameBytes ? 'the same bytes' : 'other bytes'}`],
  );
});
const head = ['sender', 'mail', 'TLS', 'same bytes', 'verdicts'];
conclude({
  faults,
  json: json && { rows },
  print: () =>
    console.log(
      tableOf(
        head,
        rows.map(({ sender, mail, tls, sameBytes, verdicts }) => [
          sender,
          mail,
          tls,
          sameBytes ? 'yes' : 'no',
          verdicts,
        ]),
      ),
    ),
});
