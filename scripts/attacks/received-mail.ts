/**
 * Item 14: mail for an application that is cheap to send and dear to receive, and senders that stop half-way. A letter to another
 * organization's route and a bounce are taken soon all the same.
 */
import { callJson } from '#lab/ask.ts';
import { connectSmtp, type SmtpClient } from '#lab/mx/smtp-client.ts';
import { listReceived } from '#mail/received/rows/received-mails.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { deliver, timeOfBounce } from './returned-mail.ts';
import { addresses, orgIdOf, receivingDomains, type Scene } from './scene.ts';

const maxWaitMs = 2_500;
const mega = 1024 * 1024;

const steps = ['nothing', 'EHLO', 'MAIL', 'RCPT', 'DATA', 'half', 'all but the dot'] as const;

/** A conversation up to a step, and no further. */
async function stopAt(port: number, step: (typeof steps)[number], from: string): Promise<SmtpClient> {
  const talk = await connectSmtp(port, { from });
  const at = steps.indexOf(step);
  if (at >= 1) await talk.says('EHLO there.invalid\r\n', '');
  if (at >= 2) await talk.says('MAIL FROM:<ann@there.invalid>\r\n', '');
  if (at >= 3) await talk.says(`RCPT TO:<orders@${receivingDomains.own}>\r\n`, '');
  if (at >= 4) await talk.says('DATA\r\n', '');
  const size = at === 5 ? 12 * mega : at === 6 ? 24 * mega : 0;
  // What the server does not take up is left where it is.
  if (size > 0) talk.write(Buffer.alloc(size, `${'a'.repeat(998)}\r\n`));
  return talk;
}

async function timeOfLetter({ ports }: Scene): Promise<number> {
  const begun = performance.now();
  const talk = await connectSmtp(ports.inbound, { from: '127.0.99.1' });
  await talk.says('EHLO mail.example\r\n', '250');
  await talk.begins('<bob@there.invalid>', `<orders@${receivingDomains.others}>`);
  await talk.says('From: bob@there.invalid\r\nSubject: Question\r\n\r\nHello\r\n.\r\n', '250');
  talk.close();
  return performance.now() - begun;
}

async function besideOthers(scene: Scene, figure: string): Promise<Verdict> {
  const bounced = await deliver(scene);
  const [letter, bounce] = await Promise.all([timeOfLetter(scene), timeOfBounce(scene, bounced)]);
  return verdict(
    `${figure}; a letter to another organization took ${Math.round(letter)} ms, a bounce ${Math.round(bounce)} ms`,
    [letter <= maxWaitMs, `a letter to another organization took ${Math.round(letter)} ms`],
    [bounce <= maxWaitMs, `a bounce was recorded after ${Math.round(bounce)} ms`],
  );
}

async function stopHalfWay(scene: Scene): Promise<Verdict> {
  const talks = await Promise.all(
    addresses(60, 6).flatMap((from) => steps.map((step) => stopAt(scene.ports.inbound, step, from))),
  );
  try {
    return await besideOthers(scene, `${talks.length} senders stop, each at a step`);
  } finally {
    for (const talk of talks) talk.close();
  }
}

const head = ['From: ann@there.invalid', 'Subject: x', 'MIME-Version: 1.0'];
const filled = (piece: string, bytes: number) => piece.repeat(Math.floor(bytes / piece.length));
const mail = (fields: string[], body = '') => [...head, ...fields, '', body].join('\r\n');
const multipart = 'Content-Type: multipart/mixed; boundary=b';
const most = 24 * mega;

/** The fields that are looked at by themselves, full of what each is split into. */
const fields = {
  From: 'a@b.invalid,',
  References: '<a@b> ',
  'Authentication-Results': '(',
  'DKIM-Signature': 'a=b;',
  'ARC-Seal': 'i=1;',
  'Content-Type': 'a/b;c*0=d;',
};

const hostile: Record<string, () => string> = {
  '100,000 fields': () => mail(Array.from({ length: 100_000 }, () => 'a:')),
  'as many Received as there is room for': () => mail(Array.from({ length: 40_000 }, () => 'Received:')),
  'as many forged results as there is room for': () =>
    mail(Array.from({ length: 10_000 }, () => 'Authentication-Results: postern.invalid; x')),
  'as many signatures as there is room for': () =>
    mail(Array.from({ length: 10_000 }, () => 'DKIM-Signature: v=1; a=rsa-sha256; d=a.invalid; s=b')),
  ...Object.fromEntries(
    Object.entries(fields).map(([name, piece]) => [
      `${name} of 400 KB`,
      () => mail([`${name}: ${filled(piece, 400_000).replace(/.{900}/g, '$&\r\n ')}`]),
    ]),
  ),
  'messages 1,000 deep': () => mail([filled('Content-Type: message/rfc822\r\n\r\n', 30_000)]),
  'multiparts 1,000 deep': () =>
    mail(
      Array.from({ length: 1000 }, (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}`),
    ),
  'the smallest parts': () => mail([multipart], filled('--b\r\n\r\n', most)),
  'the smallest files': () => mail([multipart], filled('--b\r\nContent-Type:a/b\r\n\r\n\r\n', most)),
  'the smallest lines': () => mail([], filled('\r\n', most)),
  'quoted lines': () => mail([], filled('> \r\n', most)),
  'the smallest elements': () =>
    mail(['Content-Type: text/html'], filled('<a>', most).replace(/.{900}/g, '$&\r\n')),
  'the smallest entities': () =>
    mail(['Content-Type: text/html'], filled('&lt;', most).replace(/.{900}/g, '$&\r\n')),
  'quoted-printable': () =>
    mail(['Content-Type: text/html', 'Content-Transfer-Encoding: quoted-printable'], filled('=3D\r\n', most)),
  'base64 in single letters': () => mail(['Content-Transfer-Encoding: base64'], filled('a\r\n', most)),
  'white space, to be signed': () =>
    mail(
      ['DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=a.invalid; s=b; h=from; bh=a; b=b'],
      filled(' \t \r\n', most),
    ),
};

/** Sends one, and reads it as its owner does if it was taken. */
async function sendAndRead(scene: Scene, raw: string, from: string, orgId: string): Promise<string[]> {
  const talk = await connectSmtp(scene.ports.inbound, { from });
  await talk.says('EHLO there.invalid\r\n', '250');
  await talk.begins('<ann@there.invalid>', `<orders@${receivingDomains.own}>`);
  talk.write(raw);
  const reply = await talk.says('\r\n.\r\n', '');
  talk.close();
  if (!reply.startsWith('250')) return [reply.trim()];
  const id = (await listReceived(scene.db, orgId, { limit: 1 }))[0]!.id;
  const found: string[] = [];
  for (const path of ['', '/attachments/0', '/raw']) {
    const { status, bytes } = await callJson(
      `${scene.url}/api/public/received/${id}${path}`,
      scene.key,
      'GET',
    );
    if (status !== 200 && status !== 404) found.push(`${path || 'the mail'} is answered ${status}`);
    if (path === '' && bytes > 9 * mega) found.push(`an answer of ${bytes} bytes`);
  }
  return found;
}

async function receiveHostile(scene: Scene, name: string): Promise<Verdict> {
  const attacked = await orgIdOf(scene.db, scene.key);
  const raw = hostile[name]!();
  const others = besideOthers(scene, name);
  const [found, beside] = await Promise.all([sendAndRead(scene, raw, '127.0.61.1', attacked), others]);
  const refusals = found.filter((one) => /^55\d /.test(one));
  return {
    figure: `${beside.figure}; ${refusals[0] ?? 'taken'}`,
    faults: [...beside.faults, ...found.filter((one) => !refusals.includes(one))],
  };
}

const common = { item: 14, place: 'receiving' as const, timeoutMs: 60_000 };

export const receivedMail: Attack[] = [
  { ...common, name: 'senders that stop half-way at each step', run: stopHalfWay },
  ...Object.keys(hostile).map((name) => ({
    ...common,
    name: `received mail: ${name}`,
    maxStallMs: 400,
    run: (scene: Scene) => receiveHostile(scene, name),
  })),
];
