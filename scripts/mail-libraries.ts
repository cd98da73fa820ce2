/**
 * `node scripts/mail-libraries.ts`: Postern's MIME composer and SMTP client beside nodemailer's, the measurements behind
 * compose/mime.ts and smtp-out/session.ts. First the microseconds of CPU that composing and signing a mail cost, then what
 * each client reports if a host hangs up, and what a mail of 4 KB over an open connection costs (with the server's part,
 * because the server is in this process). No options; needs a quiet machine.
 */
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import Table from 'cli-table3';
import MailComposer from 'nodemailer/lib/mail-composer';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import { newDkimKey } from '../src/accounts/domains.ts';
import { composeMime, type Fields, toBytes } from '../src/compose/mime.ts';
import { signatures } from '../src/compose/sign.ts';
import { openSession } from '../src/smtp-out/session.ts';
import { createTranscript } from '../src/smtp-out/transcript.ts';

const composed = 1000;
const runs = 5;

function fieldsOf(bytes: number): Fields {
  const line = '<p>All of this is an ordinary line of an ordinary mail, 7 bits, no more.</p>\r\n';
  return {
    from: { name: 'Shop', address: 'shop@sender.invalid', domain: 'sender.invalid' },
    to: [{ name: '', address: 'ann@there.invalid' }],
    subject: 'Your order',
    text: 'Hello, your order has been sent.\r\n',
    html: line.repeat(Math.ceil(bytes / line.length)),
    attachments: [],
    headers: {},
    messageId: 'id@postern.invalid',
    date: Date.now(),
  };
}

/** Microseconds of CPU a mail, the least of some runs, after one that warms up. */
async function cost(make: () => unknown): Promise<string> {
  const costs: number[] = [];
  for (let run = 0; run <= runs; run++) {
    const before = process.cpuUsage();
    for (let mail = 0; mail < composed; mail++) await make();
    const { user, system } = process.cpuUsage(before);
    if (run > 0) costs.push((user + system) / composed);
  }
  return Math.min(...costs).toFixed(0);
}

async function compareComposers(): Promise<void> {
  const { selector, privateKey } = await newDkimKey();
  const signer = { domain: 'sender.invalid', selector, privateKey: createPrivateKey(privateKey) };
  const table = new Table({
    head: ['HTML', 'Postern', 'nodemailer', 'signature'],
    style: { head: [], border: [] },
  });
  for (const bytes of [4096, 40960]) {
    const fields = fieldsOf(bytes);
    const { message } = composeMime(fields);
    const theirs = { ...fields, messageId: `<${fields.messageId}>`, date: new Date(fields.date) };
    table.push([
      `${bytes / 1024} KB`,
      await cost(() => toBytes(composeMime(fields).message)),
      await cost(() => new MailComposer(theirs).compile().build()),
      await cost(() => signatures(message, signer, fields.date)),
    ]);
  }
  console.log(`Composing: microseconds of CPU a mail\n${table.toString()}`);
}

type HangUp = 'never' | 'in the message' | 'after the final dot';

const sent = 2000;
const messageOf = (lines: number) =>
  Buffer.from(`Subject: x\r\n\r\n${`${'x'.repeat(70)}\r\n`.repeat(lines)}`);
const small = messageOf(57);
/** More than the kernel takes at once. */
const large = messageOf(300_000);
const envelope = { from: 'a@sender.invalid', to: 'b@there.invalid' };

function serve(socket: Socket, hangUp: HangUp): void {
  let message: string | null = null;
  socket.on('error', () => {});
  socket.write('220 mx\r\n');
  socket.on('data', (chunk) => {
    const text = chunk.toString('latin1');
    if (message === null) {
      const commands = text.split('\r\n').slice(0, -1);
      socket.write(commands.map((command) => replies[command.slice(0, 4)] ?? '250 ok\r\n').join(''));
      if (commands.at(-1) === 'DATA') message = '';
      return;
    }
    message = (message + text).slice(-5);
    const isWhole = message === '\r\n.\r\n';
    if (hangUp === 'in the message' || (isWhole && hangUp === 'after the final dot')) socket.destroy();
    else if (isWhole) {
      message = null;
      socket.write('250 ok\r\n');
    }
  });
}

const replies: Record<string, string> = { EHLO: '250-mx\r\n250 PIPELINING\r\n', DATA: '354 go\r\n' };

type Send = (port: number, message: Buffer, count: number) => Promise<string>;

const bySession: Send = async (port, message, count) => {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const ms = 5000;
  const stopped = new AbortController().signal;
  const transcript = () => createTranscript(() => performance.now());
  const opened = await openSession({
    socket,
    host: 'mx.invalid',
    address: '127.0.0.1',
    domain: 'there.invalid',
    source: null,
    sourcePool: 'default',
    name: 'postern.invalid',
    demand: { policy: 'off' },
    tls: null,
    timeouts: { greeting: ms, ehlo: ms, tls: ms, mail: ms, rcpt: ms, data: ms, dot: ms },
    transcript: transcript(),
    stopped,
  });
  if (!('session' in opened)) throw new Error(opened.result.kind);
  let last = {};
  for (let number = 0; number < count; number++) {
    last = (await opened.session.send({ ...envelope, message }, transcript(), stopped)).result;
  }
  await opened.session.quit();
  return JSON.stringify(last);
};

const byNodemailer: Send = async (port, message, count) => {
  const connection = new SMTPConnection({ host: '127.0.0.1', port, ignoreTLS: true });
  await new Promise<void>((resolve, reject) =>
    connection.connect((error) => (error ? reject(error) : resolve())),
  );
  let last: unknown;
  connection.on('error', (error) => {
    last = error;
  });
  for (let number = 0; number < count; number++) {
    last = await new Promise((resolve) =>
      connection.send(envelope, message, (error, info) => resolve(error ?? { response: info?.response })),
    );
  }
  connection.quit();
  const { code, command, response } = last as { code?: string; command?: string; response?: string };
  return JSON.stringify({ code, command, response });
};

async function compareClients(): Promise<void> {
  const table = new Table({
    head: ['the host hangs up', 'Postern', 'nodemailer'],
    style: { head: [], border: [] },
    colWidths: [20, 60, 60],
    wordWrap: true,
  });
  for (const hangUp of ['in the message', 'after the final dot', 'never'] satisfies HangUp[]) {
    const row: string[] = [];
    for (const send of [bySession, byNodemailer]) {
      const server = createServer((socket) => serve(socket, hangUp)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const report = await send(port, hangUp === 'in the message' ? large : small, 1);

      if (hangUp === 'never') {
        await send(port, small, sent);
        const before = process.cpuUsage();
        await send(port, small, sent);
        const { user, system } = process.cpuUsage(before);
        row.push(`${((user + system) / sent).toFixed(0)} µs of CPU a mail`);
      } else row.push(report);
      server.close();
    }
    table.push([hangUp, ...row]);
  }
  console.log(table.toString());
}

await compareComposers();
await compareClients();
