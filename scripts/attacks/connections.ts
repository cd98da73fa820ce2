/** Item 5: connections that clients leave open. The server lets go of them by itself, and has no more than it can bear. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { addresses, type Scene } from './scene.ts';

const soonMs = 10_000;

/** Requests that are answered with an error, and of which more was announced than comes. */
const wrong = [
  'GARBAGE\r\n\r\n',
  'POST /api/public/email/send HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{',
  'POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{',
];

/**
 * How many connections from these ports the server's process still has: those that it has let go have no inode,
 * whatever the kernel still does with them (proc(5), /proc/net/tcp).
 */
function held(port: number, clients: Set<number>): number {
  const lines = readFileSync('/proc/net/tcp', 'latin1').trim().split('\n').slice(1);
  return lines.filter((line) => {
    const [, local, remote, , , , , , , inode] = line.trim().split(/\s+/);
    const portOf = (address: string) => Number.parseInt(address.split(':')[1]!, 16);
    return portOf(local!) === port && clients.has(portOf(remote!)) && inode !== '0';
  }).length;
}

/** The ports of all that are connected by now, or will be. */
function portsOf(sockets: Socket[]): Set<number> {
  const ports = new Set<number>();
  for (const socket of sockets) socket.once('connect', () => ports.add(socket.localPort!));
  return ports;
}

/** Never closed from here, not even when the server has said that it is over. */
async function halfOpen(scene: Scene): Promise<Verdict> {
  const port = Number(new URL(scene.url).port);
  let answered = 0;
  const sockets = addresses(60, 50).flatMap((from) =>
    wrong.map((request) => {
      const socket = scene.connect(port, from);
      socket.once('data', () => (answered += 1));
      socket.resume();
      socket.write(request);
      return socket;
    }),
  );
  const clients = portsOf(sockets);
  const begun = Date.now();
  await sleep(1_000);
  while (Date.now() - begun < soonMs && held(port, clients) > 0) await sleep(100);
  const left = held(port, clients);
  const seconds = ((Date.now() - begun) / 1000).toFixed(0);
  return verdict(
    `${answered} of ${sockets.length} answered; ${left} open after ${seconds} s`,
    [answered > 0, 'no request was answered: nothing was measured'],
    [left === 0, `${left} connections are still open`],
  );
}

async function manyFromOne(scene: Scene): Promise<Verdict> {
  const port = Number(new URL(scene.url).port);
  const count = 2_000;
  let closed = 0;
  const sockets = Array.from({ length: count }, () => {
    const socket = scene.connect(port, '127.0.61.1');
    // Their end is answered with ours, so those that are refused are gone.
    socket.once('end', () => socket.end()).once('close', () => (closed += 1));
    return socket.resume();
  });
  const clients = portsOf(sockets);
  const begun = Date.now();
  while (Date.now() - begun < soonMs && held(port, clients) + closed < count) await sleep(100);
  const left = held(port, clients);
  return verdict(
    `${left} of ${count} open, ${closed} closed by the server`,
    [left + closed >= count, `${count - left - closed} connections were not taken up: nothing was measured`],
    [closed > 0, `one network has ${left} connections open, and there is no limit`],
  );
}

export const connections: Attack[] = [
  { item: 5, name: '150 sockets half open after an error', run: halfOpen },
  { item: 5, name: '2,000 silent connections from one network', run: manyFromOne },
];
