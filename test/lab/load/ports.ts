/**
 * Free ports, for programs that must be told one. They are below those that systems give to outgoing connections (Linux from
 * 32768 on, RFC 6335 from 49152 on), so that no connection takes one before it is used, or while a server is down for a moment.
 * Each process has blocks of its own and gives each port once, because a port is found first and used later: on a busy machine
 * seconds later, and other runs of tests look for ports meanwhile.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';

const [firstPort, endPort] = [10_000, 32_700];
const blockSize = 100;
/** A process that listens here on the first port of a block has that block until it ends. */
const blockHost = '127.255.255.254';

/** Of this process, not yet given. */
const ports: number[] = [];

export async function freePort(host: string): Promise<number> {
  for (;;) {
    const port = ports.pop();
    if (port === undefined) ports.push(...(await takeBlock()));
    else if (await isFree(host, port)) return port;
  }
}

async function takeBlock(): Promise<number[]> {
  for (;;) {
    const first = firstPort + blockSize * randomInt((endPort - firstPort) / blockSize);
    const server = await listen(blockHost, first);
    server?.unref();
    if (server) return Array.from({ length: blockSize }, (_, at) => first + at);
  }
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = await listen(host, port);
  await new Promise<unknown>((closed) => (server ? server.close(closed) : closed(null)));
  return server !== null;
}

/** Null if somebody else listens there. */
async function listen(host: string, port: number): Promise<Server | null> {
  const server = createServer().listen(port, host);
  return once(server, 'listening').then(
    () => server,
    () => null,
  );
}

/** Whether something accepts connections there. */
export function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
