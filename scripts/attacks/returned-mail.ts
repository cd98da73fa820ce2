/** Item 4: reports that are small to send and large to read, at port 25. A real bounce is recorded soon all the same. */
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';
import { callJson } from '#lab/ask.ts';
import { connectSmtp, type SmtpClient } from '#lab/mx/smtp-client.ts';
import { goldenMail } from '#lab/scenes/returns.ts';
import { until } from '#lab/until.ts';
import { createReturnPath } from '#mail/returned/return-path.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { addresses, type Scene } from './scene.ts';

/** The one that is being read may take 2 s. */
const maxWaitMs = 2_500;
const timeoutMs = 18_000;
const unpackedBytes = 8_000_000;

function mailWith(content: Buffer, type: string): string {
  const base64 = content.toString('base64').replace(/(.{76})/g, '$1\r\n');
  return [
    ...[
      'From: reports@mail.example',
      'To: tls-reports@postern.invalid',
      'Subject: Report',
      'MIME-Version: 1.0',
    ],
    ...[`Content-Type: ${type}`, 'Content-Transfer-Encoding: base64', '', base64, '.', ''],
  ].join('\r\n');
}

/** 8 MB of one policy's failures, none of which says anything: 13 KB. */
function tlsReport(): string {
  const piece = '{"a":0},{"b":1},';
  const failures = piece.repeat(unpackedBytes / piece.length);
  const policy = `{"policy":{"policy-type":"sts","policy-domain":"sender.invalid"},"failure-details":[${failures}{}]}`;
  const report = `{"organization-name":"x","report-id":"x","policies":[${policy}]}`;
  return mailWith(gzipSync(report), 'application/tlsrpt+gzip');
}

/** A zip with one file; its sizes may be other than true. */
function zip(packed: Buffer, plainBytes: number, crc: number): Buffer {
  const name = Buffer.from('report.xml');
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt16LE(8, 4);
  common.writeUInt32LE(crc, 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(plainBytes, 18);
  common.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, packed]);
  const entry = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common, Buffer.alloc(14), name]);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(1, 4);
  end.writeUInt16LE(1, 6);
  end.writeUInt32LE(entry.length, 8);
  end.writeUInt32LE(local.length, 12);
  return Buffer.concat([local, entry, Buffer.from('PK\x05\x06'), end]);
}

/** 200 MB of nothing that says it is 1 KB; 8 MB of records without content; 8 MB of elements in each other. */
function zipBombs(): string[] {
  const nothing = zip(deflateRawSync(Buffer.alloc(200_000_000, ' '), { level: 1 }), 1000, 0);
  const filled = (text: string) => zip(deflateRawSync(text), text.length, crc32(text));
  const records = `<feedback>${'<record/>'.repeat(unpackedBytes / 9 - 2)}</feedback>`;
  const nested = '<a>'.repeat(unpackedBytes / 3);
  return [
    nothing,
    filled(records),
    filled(nested),
    filled(records.replaceAll('/>', '></record>').slice(0, unpackedBytes)),
  ].map((archive) => mailWith(archive, 'application/zip'));
}

/** Up to the final dot, which is sent; the reply is not waited for. */
async function handIn(
  scene: Scene,
  from: string,
  to: string[],
  message: string | Buffer,
): Promise<SmtpClient> {
  const talk = await connectSmtp(scene.ports.inbound, { from });
  await talk.says('EHLO mail.example\r\n', '250');
  await talk.says('MAIL FROM:<reports@mail.example>\r\n', '250');
  for (const one of to) {
    talk.write(`RCPT TO:<${one}>\r\n`);
    // Different spellings of one address may be refused as one too many.
    await talk.reply('');
  }
  await talk.says('DATA\r\n', '354');
  await talk.drained(message);
  return talk;
}

/** An email that was delivered, and its bounce. */
export async function deliver(scene: Scene): Promise<{ emailId: string; path: string; bounce: string }> {
  const { url, key, db, config } = scene;
  const to = `bounced-${performance.now()}@there.invalid`;
  const mail = { from: 'a@sender.invalid', to, subject: 'x', text: 'x' };
  const { emailId } = JSON.parse((await callJson(`${url}/api/public/email/send`, key, 'POST', mail)).text);
  await until(async () => (await statusOf(scene, emailId)) === 'delivered', { what: 'the delivery' });
  const { id } = await db('deliveries').where({ email_id: emailId }).first('id');
  const path = createReturnPath(loadSecrets(config), config.returnPathDomain)(id);
  const bounce = goldenMail('qmail-remote', path, to).toString('latin1');
  return { emailId, path, bounce };
}

async function statusOf({ url, key }: Scene, emailId: string): Promise<string> {
  return JSON.parse((await callJson(`${url}/api/public/email/${emailId}`, key, 'GET')).text).status;
}

async function besideBounce(
  scene: Scene,
  messages: string[],
  to: string[],
  from = addresses(50, messages.length),
): Promise<Verdict> {
  const alone = await timeOfBounce(scene, await deliver(scene));
  const bounced = await deliver(scene);
  const talks = await Promise.all(messages.map((message, n) => handIn(scene, from[n]!, to, message)));
  try {
    const beside = await timeOfBounce(scene, bounced);
    return verdict(
      `a real bounce is recorded after ${Math.round(beside)} ms; before, after ${Math.round(alone)} ms`,
      [beside <= maxWaitMs, `a real bounce was recorded after ${(beside / 1000).toFixed(1)} s`],
    );
  } finally {
    for (const talk of talks) talk.close();
  }
}

export async function timeOfBounce(
  scene: Scene,
  { emailId, path, bounce }: Awaited<ReturnType<typeof deliver>>,
): Promise<number> {
  const begun = performance.now();
  const talk = await handIn(scene, '127.0.0.1', [path], `${bounce}\r\n.\r\n`);
  try {
    const isRecorded = async () => (await statusOf(scene, emailId)) === 'bounced';
    await until(isRecorded, { timeout: timeoutMs }).catch(() => {});
    return performance.now() - begun;
  } finally {
    talk.close();
  }
}

/** One local address, written in as many ways as a conversation has commands for. */
function spellings(): string[] {
  const name = 'tls-reports';
  return Array.from({ length: 90 }, (_, n) => {
    const letters = [...name].map((letter, at) => ((n >> at) & 1 ? letter.toUpperCase() : letter));
    return `${letters.join('')}@postern.invalid`;
  });
}

/** As much as is read of one mail: every line is to be decoded. */
function costly(): string {
  const fields = ['From: MAILER-DAEMON@mail.example', 'Subject: Undelivered', 'MIME-Version: 1.0'];
  const type = ['Content-Type: text/html', 'Content-Transfer-Encoding: quoted-printable'];
  return `${[...fields, ...type, '', ''].join('\r\n')}${`${'<a>=C3=A4'.repeat(14)}\r\n`.repeat(29_000)}.\r\n`;
}

/** Whoever got a mail knows its return path. */
async function besideMailToReturnPath(scene: Scene): Promise<Verdict> {
  const { path } = await deliver(scene);
  const mails = Array.from({ length: 20 }, costly);
  return besideBounce(
    scene,
    mails,
    [path],
    Array.from(mails, () => '127.0.0.90'),
  );
}

const reports = ['tls-reports@postern.invalid'];
const four = (message: string) => Array.from({ length: 4 }, () => message);
const common = { item: 4, timeoutMs: timeoutMs + 20_000 };

export const returnedMail: Attack[] = [
  {
    ...common,
    name: 'four TLS reports of 13 KB, then a real bounce',
    run: (scene) => besideBounce(scene, four(tlsReport()), reports),
  },
  {
    ...common,
    name: 'one such report to 90 spellings of one address',
    run: (scene) => besideBounce(scene, [tlsReport()], spellings()),
  },
  {
    ...common,
    name: 'four zip bombs, then a real bounce',
    run: (scene) => besideBounce(scene, zipBombs(), ['dmarc@postern.invalid']),
  },
  {
    ...common,
    name: 'twenty mails of 4 MB from one network to a return path, then a real bounce',
    run: besideMailToReturnPath,
  },
];
