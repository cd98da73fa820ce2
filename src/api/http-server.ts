/**
 * The HTTP listener under the public interface. Bytes that are not HTTP never reach Koa; they are answered here with
 * the same error body. Its deadlines bound what a slow client can hold: a minute for the headers, five for a body.
 * Connections are limited, in all and for each client network; a connection that is not to go on is closed soon after its
 * last answer, whatever the client does.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { listening } from '../base/tcp-listen.ts';
import { isTrustedProxy } from './client-address.ts';
import { limitNetworks } from './connections-per-network.ts';

export interface HttpServer {
  port: number;
  /** From now on each answer is the last one on its connection: who asks again asks whoever is asked next. */
  drain(): void;
  /** Answers what is under way, takes nothing more, and waits until no handler runs. */
  close(): Promise<void>;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Requests under way are given this long once closing has begun. */
const timeoutMs = 2_000;

/** How long a client may go on sending after its last answer, to read that answer first. */
const lingerMs = 1_000;
/** And how much of it is taken off the connection and dropped. */
const maxDropped = 20 * 1024 * 1024;

/** Far more than clients that do something need: proxies and applications use their connections again. */
const defaultLimits = { connections: 10_000, perNetwork: 1_000 };

export async function listen(
  handler: Handler,
  address: Address,
  limits: ConnectionLimits = defaultLimits,
): Promise<HttpServer> {
  const running = new Set<Promise<void>>();
  let isDraining = false;
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    response.setHeader('X-Content-Type-Options', 'nosniff');
    // Before Node's own listener, which would reset a connection on which more is coming: the answer would be lost.
    response.prependOnceListener('finish', () => {
      if (!request.complete) lingerAfter(request);
    });
    if (request.httpVersion === '1.1' && request.headers.host === undefined)
      return void response.writeHead(400, refusal.headers).end(refusal.body);
    // A busy keep-alive connection would otherwise go on asking for as long as it is open.
    if (isDraining) response.setHeader('Connection', 'close');
    const handled = handler(request, response).finally(() => running.delete(handled));
    running.add(handled);
  };
  // Left to Node, a missing Host and an unknown expectation would be refused without the error body.
  const options = { headersTimeout: 60_000, requestTimeout: 300_000, requireHostHeader: false };
  const server = createServer(options, handle);
  server.maxConnections = limits.connections;
  server.on(
    'connection',
    limitNetworks(limits.perNetwork, (peer) => isTrustedProxy(peer, address.httpProxies)),
  );
  server.on('checkExpectation', handle);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuse(error, socket));
  await listening(
    server,
    { host: address.httpHost, port: address.httpPort },
    { host: 'POSTERN_HTTP_HOST', port: 'POSTERN_HTTP_PORT' },
  );
  const drain = () => {
    isDraining = true;
  };
  return {
    port: (server.address() as AddressInfo).port,
    drain,
    async close() {
      drain();
      await new Promise<void>((resolve) => {
        const impatient = setTimeout(() => server.closeAllConnections(), timeoutMs);
        server.close(() => {
          clearTimeout(impatient);
          resolve();
        });
        server.closeIdleConnections();
      });
      // A client that went away leaves its handler behind, which may still need the database.
      await Promise.allSettled(running);
    },
  };
}

interface Address {
  httpHost: string;
  httpPort: number;
  /** Their connections are limited all together, not by network. */
  httpProxies: readonly string[];
}

interface ConnectionLimits {
  connections: number;
  perNetwork: number;
}

/** Where the connection is not to go on, drops what still comes of the body for a moment, and then closes it. */
function lingerAfter(request: IncomingMessage): void {
  const { socket } = request;
  socket.destroySoon = () => {
    const max = socket.bytesRead + maxDropped;
    socket.on('data', () => {
      if (socket.bytesRead > max) socket.destroy();
    });
    request.resume();
    closeSoon(socket);
  };
}

/** The client is told that no more comes; it may leave its own side open for as long as it likes. */
function closeSoon(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
}

const message = 'The request is not well-formed HTTP, or its headers are too large.';
const body = JSON.stringify({ error: 'BAD_REQUEST', message, issues: [] });
const refusal = {
  body,
  headers: {
    Connection: 'close',
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'X-API-Version': '1',
    'X-Content-Type-Options': 'nosniff',
    'X-RateLimit-Limit': '2147483647',
    'X-RateLimit-Remaining': '2147483647',
    'X-RateLimit-Reset': '0',
  },
};

function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const headers = Object.entries(refusal.headers).map(([name, value]) => `${name}: ${value}`);
  socket.write(['HTTP/1.1 400 Bad Request', ...headers, '', refusal.body].join('\r\n'));
  closeSoon(socket);
}
