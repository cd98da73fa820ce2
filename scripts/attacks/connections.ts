/** Item 5: connections that clients leave open. The server lets go of them by itself, and has no more than it can bear. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { callJson } from '#lab/ask.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { addresses, type Scene } from './scene.ts';

const soonMs = 10_000;
/** Less than a listener's queue, so that none of them has to knock twice. */
const batch = 200;

/** Requests that are answered with an error, and of which more was announced than comes. */
const wrong = [
  'GARBAGE\r\n\r\n',
  'POST /api/public/email/send HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{',
  'POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{',
];

/**
 * How many of these connections the server's process still has: those that it has let go have no inode, whatever the
 * kernel still does with them (proc(5), /proc/net/tcp).
 */
function held(port: number, clients: Set<string>): number {
  const lines = readFileSync('/proc/net/tcp', 'latin1').trim().split('\n').slice(1);
  const open = lines.flatMap((line) => {
    const [, local, remote, , , , , , , inode] = line.trim().split(/\s+/);
    const isServers = Number.parseInt(local!.split(':')[1]!, 16) === port;
    return isServers && clients.has(remote!) && inode !== '0' ? [remote] : [];
  });
  // A line may be there twice: the table changes while it is read.
  return new Set(open).size;
}

/** As /proc/net/tcp writes an address: its bytes backwards. */
function asKernel(address: string, port: number): string {
  const hex = (value: number, digits: number) => value.toString(16).toUpperCase().padStart(digits, '0');
  const bytes = address.split('.').map((byte) => hex(Number(byte), 2));
  return `${bytes.reverse().join('')}:${hex(port, 4)}`;
}

/** The client's side of each, as soon as it is connected. */
function noteEnds(sockets: Socket[], ends: Set<string>): void {
  for (const socket of sockets)
    socket.once('connect', () => ends.add(asKernel(socket.localAddress!, socket.localPort!)));
}

/**
 * An address of this machine that is not loopback: from there a proxy comes, whose connections are many networks'. What
 * goes from it to loopback stays on the machine.
 */
function ownAddress(): string | null {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? null;
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
  const clients = new Set<string>();
  noteEnds(sockets, clients);
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
  const from = ownAddress();
  if (from === null)
    return verdict('', [false, 'this machine has no address but loopback: nothing was measured']);
  const count = 2_000;
  let closed = 0;
  const clients = new Set<string>();
  for (let opened = 0; opened < count; opened += batch) {
    const sockets = Array.from({ length: batch }, () => {
      const socket = scene.connect(port, from);
      // Their end is answered with ours, so those that are refused are gone.
      socket.once('end', () => socket.end()).once('close', () => (closed += 1));
      return socket.resume();
    });
    noteEnds(sockets, clients);
    await sleep(200);
  }
  const begun = Date.now();
  while (Date.now() - begun < soonMs && held(port, clients) + closed < count) await sleep(100);
  const left = held(port, clients);
  return verdict(
    `${left} of ${count} open, ${closed} closed by the server`,
    [left + closed >= count, `${count - left - closed} connections were not taken up: nothing was measured`],
    [closed > 0, `one network has ${left} connections open, and there is no limit`],
  );
}

/** What a stranger gets, and what is large. */
const pipelinedPaths = ['/api/public/openapi.json', '/docs/x/reference.js', '/dashboard/sign-in', '/nothing'];

/** 64 KB of requests at once, whose client reads nothing. */
async function pipelined(scene: Scene): Promise<Verdict> {
  const before = memoryOf(scene);
  for (const path of pipelinedPaths) {
    const socket = scene.connect(Number(new URL(scene.url).port), '127.0.0.1').pause();
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(1_300));
    await sleep(1_000);
  }
  const more = memoryOf(scene) - before;
  return verdict(
    `${more} MB more in memory`,
    [!scene.hasEnded(), 'the server has ended'],
    [more < 300, `${more} MB are kept for answers that nobody reads`],
  );
}

/** In MB; NaN if the process has gone. */
function memoryOf({ pid, hasEnded }: Scene): number {
  const status = hasEnded() ? '' : readFileSync(`/proc/${pid}/status`, 'latin1');
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024);
}

/** An organization that asks all the time, on so many connections. */
const asking = 300;
const askingMs = 5_000;

async function manyCalls({ url, addTenant }: Scene): Promise<Verdict> {
  const key = await addTenant();
  const paths = ['emails?to=nobody@there.invalid', 'suppressions?search=zz', 'events?limit=1000'];
  const end = Date.now() + askingMs;
  const statuses = new Map<number, number>();
  await Promise.all(
    Array.from({ length: asking }, async (_, n) => {
      while (Date.now() < end) {
        const { status } = await callJson(`${url}/api/public/${paths[n % paths.length]}`, key, 'GET');
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }),
  );
  return verdict(JSON.stringify(Object.fromEntries(statuses)), [
    statuses.has(200),
    'nothing was answered: nothing was measured',
  ]);
}

export const connections: Attack[] = [
  { item: 5, name: '150 sockets half open after an error', run: halfOpen },
  { item: 5, name: '2,000 silent connections from one network', run: manyFromOne },
  { item: 5, name: '1,300 requests in 64 KB, four times', maxStallMs: 200, run: pipelined },
  { item: 5, name: `${asking} connections of one organization that ask all the time`, run: manyCalls },
];
