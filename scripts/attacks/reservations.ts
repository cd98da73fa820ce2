/** Item 3: clients that reserve room and do not use it. Others are served all the same, and the idle ones are cut off. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from '#lab/load/figures.ts';
import { connectSmtp, plain, type SmtpClient } from '#lab/mx/smtp-client.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { addresses, type Scene } from './scene.ts';

const mebi = 1024 * 1024;
/** A body may be slow for ten seconds; four more, and it must have been cut off. */
const allowedMs = 14_000;
/** What a person, or an application, waits for without noticing. */
const maxWaitMs = 1_000;

const port = ({ url }: Scene) => Number(new URL(url).port);

function head(path: string, headers: Record<string, string | number>): string {
  const lines = Object.entries({ Host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}`);
  return `POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
}

/** How many of these are not answered and not closed, as seen from here. */
function watch(sockets: Socket[]): () => number {
  const open = new Set(sockets);
  for (const socket of sockets) {
    socket.on('data', () => open.delete(socket));
    for (const event of ['end', 'close']) socket.on(event, () => open.delete(socket));
  }
  return () => open.size;
}

function sendHead(scene: Scene, from: string, key: string, length: number): Socket {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const socket = scene.connect(port(scene), from);
  socket.write(head('/api/public/email/send', { ...headers, 'Content-Length': length }));
  return socket;
}

/** One byte a second each, of bodies that would be small. */
async function slowBodies(scene: Scene): Promise<Verdict> {
  const count = 500;
  const keys = [await scene.addTenant(), await scene.addTenant()];
  const sockets = keys.flatMap((key, tenant) => {
    const from = addresses(10 + tenant, 25);
    return Array.from({ length: count }, (_, n) => sendHead(scene, from[n % from.length]!, key, 64 * 1024));
  });
  const open = watch(sockets);
  await sleep(1_000);
  const first = open();
  for (const end = Date.now() + allowedMs; Date.now() < end && open() > 0; await sleep(1_000)) {
    for (const socket of sockets) if (socket.writable) socket.write(' ');
  }
  return verdict(`${first} of ${sockets.length} open after 1 s, ${open()} after ${allowedMs / 1000 + 1} s`, [
    open() === 0,
    `${open()} bodies that send a byte a second are still waited for`,
  ]);
}

/** Bodies of 16 MiB, which two tenants fill the 64 MiB of all bodies with, and of 20 MB. */
async function announced(scene: Scene): Promise<Verdict> {
  const keys = [await scene.addTenant(), await scene.addTenant()];
  const lengths = [16 * mebi, 20_000_000, 16 * mebi, 8 * mebi, 4 * mebi, mebi];
  const sockets = keys.flatMap((key, tenant) =>
    lengths.flatMap((length) => addresses(20 + tenant, 10).map((from) => sendHead(scene, from, key, length))),
  );
  const open = watch(sockets);
  await sleep(1_000);
  const first = open();
  for (const end = Date.now() + allowedMs; Date.now() < end && open() > 0; ) await sleep(200);
  return verdict(`${first} of ${sockets.length} open after 1 s, ${open()} after ${allowedMs / 1000 + 1} s`, [
    open() === 0,
    `${open()} bodies of which no byte came are still waited for`,
  ]);
}

async function silentForms(scene: Scene): Promise<Verdict> {
  const operator = await scene.operator();
  const type = 'application/x-www-form-urlencoded';
  const sockets = addresses(30, 11).flatMap((from) =>
    Array.from({ length: 10 }, () => {
      const socket = scene.connect(port(scene), from);
      socket.write(head('/dashboard/sign-in', { 'Content-Type': type, 'Content-Length': 1000 }));
      return socket;
    }),
  );
  const open = watch(sockets);
  await sleep(500);
  const times: number[] = [];
  const refused: number[] = [];
  for (let page = 0; page < 20; page++) {
    const begun = performance.now();
    const { status } = await operator.ask('GET', '/dashboard/organizations');
    times.push(performance.now() - begun);
    if (status !== 200) refused.push(status);
    await sleep(100);
  }
  for (const end = Date.now() + allowedMs; Date.now() < end && open() > 0; ) await sleep(200);
  const wait = Math.round(quantile(times, 0.95));
  return verdict(
    `a signed-in person: p95 ${wait} ms, ${refused.length} of ${times.length} pages refused; ${open()} forms open at the end`,
    [refused.length === 0, `${refused.length} pages were answered ${refused[0]}`],
    [wait <= maxWaitMs, `a signed-in person waits ${wait} ms`],
    [open() === 0, `${open()} forms that never came are still waited for`],
  );
}

/** Four of them fill the 64 MiB that messages have together, but for less than the mail that is submitted. */
const slowPieces = 167;

/** Written as fast as it is taken; its end never comes. */
async function slowMail(scene: Scene, from: string): Promise<SmtpClient> {
  const talk = await connectSmtp(scene.ports.inbound, { from });
  await talk.says('EHLO slow.invalid\r\n', '250');
  await talk.says('MAIL FROM:<>\r\n', '250');
  await talk.says('RCPT TO:<postmaster@postern.invalid>\r\n', '250');
  await talk.says('DATA\r\n', '354');
  const line = `${'x'.repeat(98)}\r\n`;
  const piece = line.repeat(1_000);
  for (let n = 0; n < slowPieces && !talk.isOver; n++)
    await Promise.race([talk.drained(piece), sleep(1_000)]);
  return talk;
}

async function submit({ ports, key }: Scene, n: number): Promise<string> {
  const talk = await connectSmtp(ports.submission, { tls: true });
  try {
    await talk.says('EHLO client.invalid\r\n', '250');
    await talk.says(`AUTH PLAIN ${plain(key)}\r\n`, '235');
    await talk.says('MAIL FROM:<a@sender.invalid>\r\n', '250');
    await talk.says(`RCPT TO:<submitted-${n}@there.invalid>\r\n`, '250');
    await talk.says('DATA\r\n', '354');
    const lines = `${'x'.repeat(98)}\r\n`.repeat(10_000);
    return await talk.says(`From: a@sender.invalid\r\nSubject: Mail ${n}\r\n\r\n${lines}.\r\n`, '');
  } finally {
    talk.close();
  }
}

async function slowMails(scene: Scene): Promise<Verdict> {
  const slow = await Promise.all(addresses(40, 4).map((from) => slowMail(scene, from)));
  const drip = setInterval(() => {
    for (const talk of slow) talk.write('x\r\n');
  }, 500);
  try {
    const replies: string[] = [];
    const times: number[] = [];
    for (let n = 0; n < 5; n++) {
      const begun = performance.now();
      replies.push(await submit(scene, n));
      times.push(performance.now() - begun);
    }
    const refused = replies.filter((reply) => !reply.startsWith('250'));
    const wait = Math.round(Math.max(...times));
    return verdict(
      `a mail of 1 MB by submission: at most ${wait} ms, ${refused.length} of ${replies.length} refused`,
      [refused.length === 0, `submission answered ${refused[0]?.trim()}`],
      [wait <= 2 * maxWaitMs, `submission took ${wait} ms`],
    );
  } finally {
    clearInterval(drip);
    for (const talk of slow) talk.close();
  }
}

export const reservations: Attack[] = [
  { item: 3, name: 'two tenants with 500 slow bodies each', run: slowBodies },
  { item: 3, name: 'two tenants announce bodies and send none', run: announced },
  { item: 3, name: '110 silent forms of the dashboard', run: silentForms },
  {
    item: 3,
    name: 'four slow mails of 16.7 MB at port 25, beside submission',
    timeoutMs: 60_000,
    run: slowMails,
  },
];
