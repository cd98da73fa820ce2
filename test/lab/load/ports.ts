/**
 * Free ports, for programs that must be told one. They are below those that systems give to outgoing connections (Linux from
 * 32768 on, RFC 6335 from 49152 on), so that no connection takes one before it is used, or while a server is down for a moment.
 *
 * BUGS: a port is found first and used a moment later; another program may take it in between.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

export async function freePort(host: string): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768);
    if (await isFree(host, port)) return port;
  }
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  await new Promise((closed) => server.close(closed));
  return true;
}

/** Whether something accepts connections there. */
export function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
