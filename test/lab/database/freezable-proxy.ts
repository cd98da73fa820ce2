/** A TCP proxy in front of a PostgreSQL, which can stop forwarding without closing a connection, as a network does that fails. */
import { once } from 'node:events';
import net from 'node:net';

/** Forwards connections to this URL of PostgreSQL. After `freeze` it still reads all bytes, and forwards none. */
export async function startFreezableProxy(url: string) {
  const { hostname, port } = new URL(url);
  const sockets = new Set<net.Socket>();
  let isFrozen = false;
  const pass = (from: net.Socket, to: net.Socket) => {
    sockets.add(from);
    from.on('data', (bytes) => {
      if (!isFrozen) to.write(bytes);
    });
    from.on('error', () => to.destroy());
    from.on('close', () => {
      sockets.delete(from);
      if (!isFrozen) to.destroy();
    });
  };
  const server = net.createServer((client) => {
    const far = net.connect(Number(port), hostname);
    pass(client, far);
    pass(far, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const here = new URL(url);
  here.port = String((server.address() as net.AddressInfo).port);
  return {
    url: here.href,
    freeze() {
      isFrozen = true;
    },
    /** Existing connections stay cut off; new ones are forwarded. */
    thaw() {
      for (const socket of sockets) socket.removeAllListeners('data').resume();
      isFrozen = false;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
