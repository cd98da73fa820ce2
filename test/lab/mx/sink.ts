/**
 * A cheap MX host for measurements: a separate process that accepts every mail, discards it, and records the times. It speaks
 * only as much SMTP as needed, with PIPELINING and optionally STARTTLS, and does not check its client; the strict one is
 * test/lab/mx/mx.ts. One process can be several MX hosts, each on its own loopback address at the same port: fast, slow,
 * answering 421 to connections over a limit, or never greeting.
 *
 * The parent asks for its records over the IPC channel; without its parent the process ends.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';

export interface Exchanger {
  /** Any 127.x.y.z. */
  host: string;
  tls?: boolean;
  /** Delay of each message, from its final dot to its 250. */
  delayMs?: number;
  /** Maximum simultaneous connections; further ones are greeted with a 421. */
  limit?: number;
  /** Accepts connections and never greets. */
  neverGreets?: boolean;
}

/** All times are milliseconds since the epoch, with fractions. */
interface AcceptedMail {
  host: string;
  to: string;
  /** When its final dot arrived. */
  at: number;
}

interface Connection {
  host: string;
  openedAt: number;
  closedAt: number | null;
  mails: number;
  isRefused: boolean;
}

interface Records {
  accepted: AcceptedMail[];
  connections: Connection[];
}

export interface Sink {
  port: number;
  /** Number of mails that this host has accepted. */
  count(host: string): Promise<number>;
  /** When the mail to this recipient arrived; null if it has not. */
  arrival(to: string): Promise<number | null>;
  records(): Promise<Records>;
  stop(): Promise<unknown>;
}

/** An empty request asks for all records. */
interface Request {
  countAt?: string;
  arrivalOf?: string;
}

export async function startSink(exchangers: Exchanger[]): Promise<Sink> {
  const child = fork(import.meta.filename, [JSON.stringify(exchangers)]);
  const [port] = await once(child, 'message');
  if (typeof port !== 'number') throw new Error(`the sink does not start: ${port}`);
  // One request at a time, each answered by one message.
  let asking: Promise<unknown> = Promise.resolve();
  const ask = <T>(request: Request): Promise<T> => {
    const answer = asking.then(async () => {
      const answered = once(child, 'message');
      child.send(request);
      return (await answered)[0];
    });
    asking = answer;
    return answer;
  };
  return {
    port,
    count: (host) => ask<number>({ countAt: host }),
    arrival: (to) => ask<number | null>({ arrivalOf: to }),
    records: () => ask<Records>({}),
    async stop() {
      const ended = once(child, 'exit');
      if (child.exitCode === null && child.kill('SIGKILL')) await ended;
    },
  };
}

// Everything below runs in that process.

const pem = readFileSync(new URL('../../fixtures/mx.pem', import.meta.url));
const secureContext = tls.createSecureContext({ cert: pem, key: pem });

const now = () => performance.timeOrigin + performance.now();

async function serve(exchangers: Exchanger[]): Promise<void> {
  const records: Records = { accepted: [], connections: [] };
  let port = 0;
  for (const exchanger of exchangers) {
    const open = { count: 0 };
    const server = net.createServer({ noDelay: true }, (socket) =>
      onConnection(socket, exchanger, records, open),
    );
    server.listen(port, exchanger.host, 4096);
    await once(server, 'listening');
    port = (server.address() as net.AddressInfo).port;
  }
  process.on('message', (request: Request) => process.send!(answerTo(request, records)));
  process.on('disconnect', () => process.exit());
  // Ctrl-C is handled by the parent, which ends this process when it is done.
  process.on('SIGINT', () => {});
  process.send!(port);
}

function answerTo({ countAt, arrivalOf }: Request, { accepted, connections }: Records) {
  if (countAt) return accepted.filter(({ host }) => host === countAt).length;
  if (arrivalOf) return accepted.findLast(({ to }) => to === arrivalOf)?.at ?? null;
  return { taken: accepted, connections };
}

function onConnection(
  socket: net.Socket,
  exchanger: Exchanger,
  records: Records,
  open: { count: number },
): void {
  const { host, limit = Number.POSITIVE_INFINITY } = exchanger;
  const isRefused = open.count >= limit;
  const connection: Connection = { host, openedAt: now(), closedAt: null, mails: 0, isRefused };
  records.connections.push(connection);
  socket.on('error', () => socket.destroy());
  if (!isRefused) open.count += 1;
  socket.on('close', () => {
    connection.closedAt = now();
    if (!isRefused) open.count -= 1;
  });
  if (exchanger.neverGreets) return void socket.resume();
  if (isRefused) {
    socket.resume();
    return void socket.end('421 4.7.0 too many connections\r\n');
  }
  socket.write('220 sink.invalid ESMTP\r\n');
  converse(socket, exchanger, (to) => {
    connection.mails += 1;
    records.accepted.push({ host, to, at: now() });
  });
}

/** Reads lines and writes replies; calls `take` for each message when its final dot has arrived. */
function converse(socket: net.Socket, exchanger: Exchanger, onMail: (to: string) => void): void {
  const { delayMs = 0, tls: offersTls = false } = exchanger;
  let received = '';
  let to = '';
  let inData = false;
  let isBusy = false;

  async function work(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    while (await step());
    isBusy = false;
  }

  async function step(): Promise<boolean> {
    const ending = inData ? '\r\n.\r\n' : '\r\n';
    const end = received.indexOf(ending);
    if (end < 0) {
      // Of a message, only bytes that may begin its end are kept.
      if (inData) received = received.slice(-4);
      return false;
    }
    const line = received.slice(0, end);
    received = received.slice(end + ending.length);
    if (inData) await accepted();
    else answer(line);
    return true;
  }

  async function accepted(): Promise<void> {
    inData = false;
    onMail(to);
    if (delayMs > 0) await sleep(delayMs);
    socket.write('250 2.0.0 taken\r\n');
  }

  function answer(line: string): void {
    const verb = line.slice(0, 4).toUpperCase();
    if (verb === 'RCPT') to = /<(.*)>/.exec(line)?.[1] ?? '';
    if (verb === 'EHLO') {
      const offer = offersTls && !(socket instanceof tls.TLSSocket) ? '250-STARTTLS\r\n' : '';
      socket.write(`250-sink.invalid\r\n250-PIPELINING\r\n250-8BITMIME\r\n${offer}250 SIZE 26214400\r\n`);
    } else if (verb === 'DATA') {
      inData = true;
      // The line end of DATA precedes the first line, which may be the final dot.
      received = `\r\n${received}`;
      socket.write('354 go ahead\r\n');
    } else if (verb === 'STAR') startTls();
    else if (verb === 'QUIT') socket.end('221 2.0.0 bye\r\n');
    else socket.write('250 2.0.0 ok\r\n');
  }

  function startTls(): void {
    socket.write('220 2.0.0 go ahead\r\n');
    socket.removeAllListeners('data');
    const secure = new tls.TLSSocket(socket, { isServer: true, secureContext });
    secure.on('error', () => secure.destroy());
    converse(secure, exchanger, onMail);
  }

  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    work();
  });
}

if (import.meta.main) {
  await serve(JSON.parse(process.argv[2]!)).catch((error) => {
    process.send!(error.message);
    process.exitCode = 1;
  });
}
