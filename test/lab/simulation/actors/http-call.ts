/** One HTTP call by an actor, on a connection of its own; small, because a run makes tens of thousands. */
import type { Network } from '../machine/network.ts';
import { VirtualSocket } from '../machine/network.ts';
import { type Machine, scheduler } from '../machine/scheduler.ts';

export interface HttpCall {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  timeoutMs?: number;
}

export interface HttpAnswer {
  status: number;
  body: string;
  retryAfterS: number | null;
}

/** `answered` gets null if no answer arrived; whether the call was heard is then not known unless `wasSent` is false. */
export function callHttp(
  network: Network,
  [machine, address, port]: [machine: Machine, address: string, port: number],
  { method, path, headers = {}, body = '', timeoutMs = 30_000 }: HttpCall,
  answered: (answer: HttpAnswer | null, wasSent: boolean) => void,
): void {
  scheduler.as(machine, () => {
    const socket = new VirtualSocket(network);
    socket.connecting = true;
    let received = '';
    let wasSent = false;
    let isOver = false;
    const finish = (answer: HttpAnswer | null) => {
      if (isOver) return;
      isOver = true;
      timer.run = null;
      socket.destroy();
      answered(answer, wasSent);
    };
    const timer = scheduler.after(timeoutMs, () => finish(null));
    socket.on('error', () => finish(null));
    socket.on('close', () => finish(null));
    socket.on('connect', () => {
      wasSent = true;
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
      const length = `content-length: ${Buffer.byteLength(body)}`;
      socket.write(
        [`${method} ${path} HTTP/1.1`, 'host: postern', 'connection: close', length, ...lines, '', body].join(
          '\r\n',
        ),
      );
    });
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1');
      const answer = parsed(received);
      if (answer) finish(answer);
    });
    network.connect(socket, address, port);
  });
}

function parsed(text: string): HttpAnswer | null {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const head = text.slice(0, end);
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  const body = text.slice(end + 4);
  if (body.length < length) return null;
  const retryAfter = /^retry-after: (\d+)/im.exec(head)?.[1];
  return { status: Number(head.slice(9, 12)), body, retryAfterS: retryAfter ? Number(retryAfter) : null };
}
