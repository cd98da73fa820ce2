/**
 * A cheap MX host for measurements: a separate process that accepts every mail, discards it, and records its recipient and
 * time. It speaks only as much SMTP as needed and does not check its client; the strict one, which tests script, is mx.ts, and
 * smtp-sink.ts is the one in C that only counts. One process can be several MX hosts, each on its own loopback address at the
 * same port: fast, slow, or never greeting.
 *
 * The parent asks for the records over the IPC channel; without its parent the process ends.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Exchanger {
  /** Any 127.x.y.z. */
  host: string;
  /** Delay of each message, from its final dot to its 250. */
  delayMs?: number;
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

export interface Sink {
  port: number;
  /** Number of mails that this host has accepted. */
  count(host: string): Promise<number>;
  /** When the mail to this recipient arrived; null if it has not. */
  arrival(to: string): Promise<number | null>;
  /** All accepted mails. */
  records(): Promise<AcceptedMail[]>;
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
    records: () => ask<AcceptedMail[]>({}),
    async stop() {
      const ended = once(child, 'exit');
      if (child.exitCode === null && child.kill('SIGKILL')) await ended;
    },
  };
}

// Everything below runs in that process.

const now = () => performance.timeOrigin + performance.now();

async function serve(exchangers: Exchanger[]): Promise<void> {
  const records: AcceptedMail[] = [];
  let port = 0;
  for (const exchanger of exchangers) {
    const server = net.createServer({ noDelay: true }, (socket) => onConnection(socket, exchanger, records));
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

function answerTo({ countAt, arrivalOf }: Request, records: AcceptedMail[]) {
  if (countAt) return records.filter(({ host }) => host === countAt).length;
  if (arrivalOf) return records.findLast(({ to }) => to === arrivalOf)?.at ?? null;
  return records;
}

function onConnection(socket: net.Socket, exchanger: Exchanger, records: AcceptedMail[]): void {
  const { host, delayMs = 0, neverGreets = false } = exchanger;
  socket.on('error', () => socket.destroy());
  if (neverGreets) return void socket.resume();
  socket.write('220 sink.invalid ESMTP\r\n');
  converse(socket, delayMs, (to) => records.push({ host, to, at: now() }));
}

/** Reads lines and writes replies; calls `take` for each message when its final dot has arrived. */
function converse(socket: net.Socket, delayMs: number, onMail: (to: string) => void): void {
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
      socket.write('250-sink.invalid\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 26214400\r\n');
    } else if (verb === 'DATA') {
      inData = true;
      // The line end of DATA precedes the first line, which may be the final dot.
      received = `\r\n${received}`;
      socket.write('354 go ahead\r\n');
    } else if (verb === 'QUIT') socket.end('221 2.0.0 bye\r\n');
    else socket.write('250 2.0.0 ok\r\n');
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
