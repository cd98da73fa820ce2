/**
 * An endpoint of webhooks: a real web server that notes every request, has the `standardwebhooks` library verify it,
 * and answers as it is told:
 *
 *   const receiver = await startReceiver(t, { now: world.clock.now });
 *   receiver.secret = secret;
 *   receiver.answer = (_request, response) => response.writeHead(500).end();
 *
 * `now` is what its clock says, for the library refuses what is older or newer than five minutes.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import { Webhook } from 'standardwebhooks';
import { freePort } from '../load/ports.ts';
import { until } from '../until.ts';

export interface Received {
  id: string;
  timestamp: number;
  headers: IncomingMessage['headers'];
  bytes: Buffer;
  raw: string;
  // biome-ignore lint/suspicious/noExplicitAny: what was posted is what the tests look at
  body: any;
  /** What the library says against it; null: nothing. */
  fault: string | null;
  /** What it was answered; 0: nothing. */
  status: number;
}

type Reply = (request: Received, response: ServerResponse) => unknown;

export const ok: Reply = (_request, response) => response.writeHead(204).end();

export interface ReceiverOptions {
  now?: () => number;
  host?: string;
  port?: number;
  pem?: Buffer;
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

export async function startReceiver(
  t: ExecutionContext,
  { now = Date.now, host = '127.0.0.1', port = 0, pem }: ReceiverOptions = {},
) {
  const requests: Received[] = [];
  const sockets = { count: 0 };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await buffer(request);
    const raw = bytes.toString();
    const isJson = request.headers['content-type'] === 'application/json';
    const received: Received = {
      id: String(request.headers['webhook-id']),
      timestamp: Number(request.headers['webhook-timestamp']),
      headers: request.headers,
      bytes,
      raw,
      body: isJson ? JSON.parse(raw) : null,
      fault: faultOf(receiver.secret, raw, request.headers, now),
      status: 0,
    };
    requests.push(received);
    response.on('finish', () => {
      received.status = response.statusCode;
    });
    receiver.answer(received, response);
  }

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    serve(request, response).catch(() => response.destroy());
  };
  const server = pem ? createTlsServer({ cert: pem, key: pem }, listener) : createServer(listener);
  server.on('connection', () => {
    sockets.count += 1;
  });
  const listen = async (at: number) => {
    server.listen(at, host);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const down = async () => {
    if (!server.listening) return;
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  };
  const bound = await listen(port || (await freePort(host)));
  t.teardown(down);

  const receiver = {
    url: `${pem ? 'https' : 'http'}://${host}:${bound}/hook`,
    port: bound,
    secret: '',
    answer: ok,
    requests,
    sockets,
    /** What it took, in order. */
    accepted: () => requests.filter(({ status }) => status >= 200 && status < 300),
    received: (count: number, timeout?: number) =>
      until(() => requests.length >= count && requests, {
        ...(timeout && { timeout }),
        what: () => `${count} requests; there were ${requests.length}`,
      }),
    /** Nobody listens there until `up`. */
    down,
    up: () => listen(bound),
  };
  return receiver;
}

export function faultOf(
  secret: string,
  raw: string,
  headers: IncomingMessage['headers'],
  now: () => number,
): string | null {
  const real = Date.now;
  Date.now = now;
  try {
    new Webhook(secret).verify(raw, headers as Record<string, string>);
    return null;
  } catch (error) {
    return (error as Error).message;
  } finally {
    Date.now = real;
  }
}
