/**
 * The load of the bench: calls POST /api/public/email/send, or batch, from a separate process over persistent connections, at
 * the lowest cost that a Node process can have. It writes each request as one string and reads only the status and length of
 * each response, because the cost of a client library would be taken from the machine that is being measured.
 *
 * A run goes as fast as `parallel` callers can, or at a fixed rate. At a fixed rate, the time of a call starts when it was
 * due and not when a connection was free; otherwise a server that stalls would get fewer calls and look better.
 *
 * BUGS: a response without Content-Length is not understood.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

interface Order {
  url: string;
  key: string;
  /** The JSON body; `recipientMark` in it is replaced by each recipient. */
  body: string;
  to: string[];
  parallel: number;
  /** Calls per second; null for full speed. */
  rate: number | null;
  /** Recipients in a call; more than one is a batch. */
  batch: number;
}

/** Placeholder for the recipient in a body. */
export const recipientMark = '@@TO@@';

/** In the order of the recipients, milliseconds since the epoch with fractions. */
interface Times {
  calledAt: Float64Array;
  answeredAt: Float64Array;
}

export interface Loader {
  /** Rejects if any call is not answered 200. */
  run(order: Order): Promise<Times>;
  stop(): Promise<unknown>;
}

/** Started once, so that its code is warm after the first run. */
export async function startLoader(): Promise<Loader> {
  const child = fork(import.meta.filename, { serialization: 'advanced' });
  await once(child, 'message');
  return {
    async run(order) {
      const answered = once(child, 'message');
      child.send(order);
      const [times] = await answered;
      if (typeof times === 'string') throw new Error(times);
      return times;
    },
    async stop() {
      const ended = once(child, 'exit');
      if (child.exitCode === null && child.kill('SIGKILL')) await ended;
    },
  };
}

// Everything below runs in that process.

const now = () => performance.timeOrigin + performance.now();

interface Caller {
  call(text: string): Promise<void>;
  end(): void;
}

async function carryOut(order: Order): Promise<Times> {
  const { to, parallel, rate, batch } = order;
  const times = { calledAt: new Float64Array(to.length), answeredAt: new Float64Array(to.length) };
  const request = requestOf(order);
  const callers = await Promise.all(Array.from({ length: parallel }, () => startCaller(order.url)));
  const begun = now();
  let next = 0;
  const take = () => {
    const index = next;
    next += batch;
    return index;
  };
  const work = async (caller: Caller) => {
    for (let index = take(); index < to.length; index = take()) {
      const dueAt = rate === null ? now() : begun + (index * 1000) / batch / rate;
      // A timer can be a millisecond late, which would be the client's fault, so the rest is waited for in turns of the event loop.
      for (let early = dueAt - now(); early > 1; early = dueAt - now()) await sleep(Math.floor(early));
      times.calledAt.fill(Math.min(dueAt, now()), index, index + batch);
      await caller.call(request(to.slice(index, index + batch)));
      times.answeredAt.fill(now(), index, index + batch);
    }
  };
  try {
    await Promise.all(callers.map(work));
  } finally {
    for (const caller of callers) caller.end();
  }
  return times;
}

function requestOf({ url, key, body, batch }: Order): (to: string[]) => string {
  const [before, after] = body.split(recipientMark) as [string, string];
  const bytes = Buffer.byteLength(body) - recipientMark.length;
  const head =
    `POST /api/public/email/${batch > 1 ? 'batch' : 'send'} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${key}\r\n` +
    'Content-Type: application/json\r\nContent-Length: ';
  return (to) => {
    if (batch === 1) return `${head}${bytes + to[0]!.length}\r\n\r\n${before}${to[0]}${after}`;
    const many = `[${to.map((one) => `${before}${one}${after}`).join()}]`;
    return `${head}${Buffer.byteLength(many)}\r\n\r\n${many}`;
  };
}

async function startCaller(url: string): Promise<Caller> {
  const { hostname, port } = new URL(url);
  const socket = net.connect({ host: hostname, port: Number(port), noDelay: true });
  let received = '';
  let settle: { resolve(): void; reject(error: Error): void } | null = null;
  const fail = (error: Error) => settle?.reject(error);
  socket.setEncoding('latin1');
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('the connection was closed before the answer')));
  socket.on('data', (chunk) => {
    received += chunk;
    const headEnd = received.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received)?.[1] ?? Number.NaN);
    if (received.length < headEnd + 4 + length) return;
    const answer = received;
    received = '';
    if (answer.startsWith('HTTP/1.1 200') && !answer.includes('"error"')) settle?.resolve();
    else fail(new Error(`a send was answered: ${answer}`));
  });
  await once(socket, 'connect');
  return {
    call: (text) =>
      new Promise((resolve, reject) => {
        settle = { resolve, reject };
        socket.write(text);
      }),
    end: () => socket.destroy(),
  };
}

if (import.meta.main) {
  process.on('disconnect', () => process.exit());
  process.on('message', (order: Order) =>
    carryOut(order).then(
      (times) => process.send!(times),
      (error: Error) => process.send!(error.message),
    ),
  );
  process.send!('ready');
}
