/**
 * The HTTP and HTTPS listeners under the public interface. Bytes that are not HTTP never reach Koa: this file responds to them with
 * the same error body. Deadlines limit slow clients: a minute for the headers, five for a body. Connections are limited
 * in total and for each client network. A connection that must not be reused is closed soon after its last response,
 * whatever the client does.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { clientAddressOf, trustedProxies } from '#platform/base/net/client-address.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import { listening } from '#platform/base/net/tcp-listen.ts';
import { limitNetworks } from './connections-per-network.ts';
import { joinChunks } from './joined-chunks.ts';
import { type ClientNetwork, RequestTurns } from './request-turns.ts';

export interface HttpServer {
  port: number;
  /** Sets the certificate of later connections. Null on a port without TLS. */
  useCertificate: ((pair: { cert: string; key: string }) => void) | null;
  /** From now on every response closes its connection, so that clients reconnect, possibly to another node. */
  drain(): void;
  /** Accepts no more requests, completes those in flight, and waits until no handler runs. */
  close(): Promise<void>;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The time that requests in flight get after closing has begun. */
const timeoutMs = 2_000;

const minCloseIntervalMs = 1_000;

/** A client can continue to send for this long after its last response, so that it gets to read that response. */
const lingerMs = 1_000;
/** The number of such bytes that are read and dropped. */
const maxDropped = 20 * 1024 * 1024;

/** A client that opens a connection and does not complete its TLS handshake is disconnected after this. */
const handshakeTimeout = 30_000;

/** Far more than honest clients need, because proxies and applications reuse their connections. */
const defaultLimits = { connections: 10_000, perNetwork: 1_000 };

export async function listen(
  handler: Handler,
  address: Address,
  limits: ConnectionLimits = defaultLimits,
): Promise<HttpServer> {
  const isProxy = trustedProxies(address.httpProxies);
  const requests = new Requests(handler, isProxy);
  // Node itself would refuse a missing Host and an unknown expectation without the error body.
  const options = {
    headersTimeout: 60_000,
    requestTimeout: 300_000,
    requireHostHeader: false,
    // Clients are told this time; Node waits a second longer, so that a request sent at its end is still answered.
    keepAliveTimeout: address.httpKeepAlive,
  };
  const { tls } = address;
  const tlsServer = tls && createTlsServer({ ...options, ...tls, handshakeTimeout }, requests.handle);
  // A failed handshake gets no response: Node would call it a `clientError`.
  tlsServer?.removeAllListeners('tlsClientError').on('tlsClientError', (_, socket) => socket.destroy());
  const server = tlsServer ?? createServer(options, requests.handle);
  server.maxConnections = limits.connections;
  server.on('connection', limitNetworks(limits.perNetwork, isProxy));
  const sockets = trackSockets(server);
  makeRoomAtLimit(server);
  server.on('checkExpectation', requests.handle);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuse(error, socket));
  await listening(
    server,
    { host: address.httpHost, port: address.httpPort },
    address.names ?? { host: 'POSTERN_HTTP_HOST', port: 'POSTERN_HTTP_PORT' },
  );
  return {
    port: (server.address() as AddressInfo).port,
    useCertificate: tlsServer ? (pair) => tlsServer.setSecureContext(pair) : null,
    drain: () => requests.drain(),
    async close() {
      requests.drain();
      await closeConnections(server, sockets);
      await requests.completed();
    },
  };
}

/** Requests of a connection that may wait for an answer behind the one in work. Clients that send any are very rare. */
const maxPipelined = 16;

/**
 * The requests whose handlers run. A connection has one of them: with 64 KB a client can send more than a thousand requests at
 * once, and Node would call their handlers in a row and keep all responses until the client reads the first. The responses have
 * to be in the order of the requests anyway (RFC 9112 section 9.3.2). The next one of a connection begins in a later turn of the
 * event loop, because otherwise the requests of all connections would be handled in one.
 */
class Requests {
  readonly #handler: Handler;
  readonly #isProxy: (address: string) => boolean;
  readonly #turns = new RequestTurns();
  /** The network of each connection. */
  readonly #networks = new WeakMap<Socket, ClientNetwork>();
  readonly #running = new Set<Promise<void>>();
  /** Connections with a request in work, each with the function that starts the requests behind it. */
  readonly #waiting = new WeakMap<Socket, (() => void)[]>();
  #isDraining = false;

  constructor(handler: Handler, isProxy: (address: string) => boolean) {
    this.#handler = handler;
    this.#isProxy = isProxy;
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request;
    const waiting = this.#waiting.get(socket);
    joinChunks(request);
    if (waiting === undefined) {
      this.#waiting.set(socket, []);
      this.#turns.enter(this.#networkOf(request), false, (leave) => this.#begin(request, response, leave));
    } else if (waiting.length < maxPipelined) {
      const network = this.#networkOf(request);
      waiting.push(() => this.#turns.enter(network, true, (leave) => this.#begin(request, response, leave)));
    } else {
      socket.destroy();
    }
  };

  #networkOf({ socket, headers }: IncomingMessage): ClientNetwork {
    let network = this.#networks.get(socket);
    if (network === undefined) {
      const { remoteAddress = '' } = socket;
      network = { name: clientNetwork(remoteAddress), isProxy: this.#isProxy(remoteAddress) };
      this.#networks.set(socket, network);
    }
    const forwardedFor = headers['x-forwarded-for'];
    if (!network.isProxy || typeof forwardedFor !== 'string') return network;
    const client = clientAddressOf(socket.remoteAddress ?? '', forwardedFor, this.#isProxy);
    return { name: clientNetwork(client), isProxy: this.#isProxy(client) };
  }

  #begin(request: IncomingMessage, response: ServerResponse, leave: () => void): void {
    const { socket } = request;
    if (socket.destroyed) {
      leave();
      this.#waiting.delete(socket);
      return;
    }
    response.once('close', () => {
      leave();
      const next = this.#waiting.get(socket)!.shift();
      if (next && !socket.destroyed) next();
      else this.#waiting.delete(socket);
    });
    response.setHeader('X-Content-Type-Options', 'nosniff');
    // Must run before Node's own listener, which resets a connection that still receives data and so loses the response.
    response.prependOnceListener('finish', () => {
      if (!request.complete) lingerAfter(request);
    });
    if (!isHostClear(request)) {
      response.writeHead(400, refusal.headers).end(refusal.body);
      return;
    }
    // Otherwise a busy keep-alive connection would send requests for as long as it is open.
    if (this.#isDraining) response.setHeader('Connection', 'close');
    const handled = this.#handler(request, response).finally(() => this.#running.delete(handled));
    this.#running.add(handled);
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** The handler of a client that disconnected can still run and need the database. */
  async completed(): Promise<void> {
    await Promise.allSettled(this.#running);
  }
}

/** At the limit, connections that wait for a next request are closed: the client whose connection was refused tries again. */
function makeRoomAtLimit(server: Server): void {
  let closedAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    const now = performance.now();
    // Finding the idle ones looks at all of them.
    if (now - closedAt < minCloseIntervalMs) return;
    closedAt = now;
    server.closeIdleConnections();
  });
}

/** RFC 9112 section 3.2: HTTP/1.1 needs one Host field, and two are refused, because a proxy may have read the other one. */
function isHostClear({ httpVersion, headers, rawHeaders }: IncomingMessage): boolean {
  if (headers.host === undefined) return httpVersion !== '1.1';
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') count += 1;
  return count === 1;
}

/** Node's own list of connections lacks those whose TLS handshake is not complete. */
function trackSockets(server: Server): Set<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

function closeConnections(server: Server, sockets: Set<Socket>): Promise<void> {
  return new Promise((resolve) => {
    const timeout = setTimeout(() => {
      for (const socket of sockets) socket.destroy();
    }, timeoutMs);
    server.close(() => {
      clearTimeout(timeout);
      resolve();
    });
    server.closeIdleConnections();
  });
}

interface Address {
  /** Null: all addresses of the machine. */
  httpHost: string | null;
  httpPort: number;
  /** Connections from these count only toward the total, not toward a network's limit. */
  httpProxies: readonly string[];
  /** How long a connection without a request stays open, in milliseconds. */
  httpKeepAlive: number;
  /** Given: HTTPS. */
  tls?: TlsOptions;
  /** The settings that host and port come from, if not those of the API's port. */
  names?: { host: string; port: string };
}

interface ConnectionLimits {
  connections: number;
  perNetwork: number;
}

/** Ends a connection that must not be reused: drops the rest of the body for a moment, then closes the connection. */
function lingerAfter(request: IncomingMessage): void {
  const { socket } = request;
  socket.destroySoon = () => {
    const max = socket.bytesRead + maxDropped;
    // Not parsed any more: of chunks of a byte (RFC 9112 section 7.1), what comes in one turn takes a third of a second.
    socket.removeAllListeners('data');
    socket.on('data', () => {
      if (socket.bytesRead > max) socket.destroy();
    });
    socket.resume();
    closeSoon(socket);
  };
}

/** Ends our side, and destroys the socket if the client keeps its side open. */
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
