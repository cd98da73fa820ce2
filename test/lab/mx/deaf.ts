/**
 * Hosts on loopback that never answer a SYN. A process listens there and is stopped (SIGSTOP), so that it accepts no
 * connection, and this file fills its short backlog of connections. Linux then drops further SYNs, as a firewall does, so
 * that a client gets no reply, not even a refusal.
 *
 * BUGS: Linux only. A stopped process does not notice that its parent was killed, and stays.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Deaf {
  stop(): Promise<unknown>;
}

export async function startDeaf(hosts: string[], port: number): Promise<Deaf> {
  const child = fork(import.meta.filename, [JSON.stringify({ hosts, port })]);
  const fillers: net.Socket[] = [];
  const stop = async () => {
    for (const socket of fillers) socket.destroy();
    const ended = once(child, 'exit');
    if (child.exitCode === null && child.kill('SIGKILL')) await ended;
  };
  try {
    const [trouble] = await once(child, 'message');
    if (trouble) throw new Error(`no deaf host: ${trouble}`);
    child.kill('SIGSTOP');
    for (const host of hosts) fillers.push(...(await fill(host, port)));
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

const soonMs = 250;
const max = 20;

/** Opens connections until one is not answered. */
async function fill(host: string, port: number): Promise<net.Socket[]> {
  const sockets: net.Socket[] = [];
  while (sockets.length < max) {
    const socket = net.connect({ host, port }).on('error', () => {});
    sockets.push(socket);
    const isTaken = await Promise.race([once(socket, 'connect').then(() => true), sleep(soonMs, false)]);
    if (!isTaken) {
      socket.destroy();
      return sockets;
    }
  }
  throw new Error(`${host}:${port} goes on answering`);
}

async function listenOnly({ hosts, port }: { hosts: string[]; port: number }): Promise<void> {
  for (const host of hosts) await once(net.createServer().listen({ host, port, backlog: 1 }), 'listening');
  process.send!(null);
}

if (import.meta.main) {
  await listenOnly(JSON.parse(process.argv[2]!)).catch((error) => process.send!(error.message));
}
