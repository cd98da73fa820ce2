/**
 * Mail exchangers that follow a script to the letter, whatever the client does: the other side of the hostile
 * conversations. A script is a list of steps, played anew on every connection; at its end the server says nothing more.
 */
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export type Step =
  | { say: string }
  /** Reads until a line of the client begins with this; '.' is the final dot. */
  | { hear: string }
  /** These bytes, one each `everyMs`; without end where `forever`. */
  | { drip: string; intervalMs: number; forever?: boolean }
  /** The same bytes over and over, this many in all or until the client has gone. */
  | { flood: string; bytes: number }
  | { pause: number }
  | { end: 'close' | 'rst' | 'fin' };

export interface Hostile {
  port: number;
  readonly connections: number;
  /** What its connections heard, as it came. */
  heard: string[];
  close(): Promise<void>;
}

export async function startHostile(host: string, port: number, steps: Step[]): Promise<Hostile> {
  const sockets = new Set<net.Socket>();
  const heard: string[] = [];
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }).listen(port, host);
  await once(server, 'listening');
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    // A client that hangs up is let go, unless the script has half closed already.
    socket.on('end', () => socket.end());
    play(socket, steps, heard).catch(() => socket.destroy());
  });
  return {
    port: (server.address() as net.AddressInfo).port,
    heard,
    get connections() {
      return sockets.size;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

async function play(socket: net.Socket, steps: Step[], heard: string[]): Promise<void> {
  let received = '';
  let wake = () => {};
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    heard.push(chunk.toString('latin1'));
    wake();
  });
  const hear = async (beginning: string) => {
    const line = beginning === '.' ? /^\.\r\n/m : new RegExp(`^${beginning}.*\r\n`, 'mi');
    for (let match = line.exec(received); ; match = line.exec(received)) {
      if (match) {
        received = received.slice(match.index + match[0].length);
        return;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  for (const step of steps) {
    if (socket.destroyed) return;
    if ('hear' in step) await hear(step.hear);
    else if ('say' in step) socket.write(step.say, 'latin1');
    else if ('pause' in step) await sleep(step.pause);
    else if ('drip' in step) await drip(socket, step);
    else if ('flood' in step) await flood(socket, step);
    else end(socket, step.end);
  }
}

async function drip(socket: net.Socket, { drip, intervalMs, forever }: Extract<Step, { drip: string }>) {
  do {
    for (const character of drip) {
      if (!socket.writable) return;
      socket.write(character, 'latin1');
      await sleep(intervalMs);
    }
  } while (forever);
}

async function flood(socket: net.Socket, { flood, bytes }: Extract<Step, { flood: string }>) {
  const chunk = Buffer.from(flood.repeat(Math.ceil(65_536 / flood.length)), 'latin1');
  for (let sent = 0; sent < bytes && socket.writable; sent += chunk.length) {
    if (socket.write(chunk)) await new Promise((resolve) => setImmediate(resolve));
    else await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {});
  }
}

function end(socket: net.Socket, how: 'close' | 'rst' | 'fin'): void {
  if (how === 'rst') socket.resetAndDestroy();
  else if (how === 'fin') socket.end();
  else socket.destroy();
}
